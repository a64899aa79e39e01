"""Front doors: what turns models of other formats into the IR, each imported only when its format is asked for."""
