"""Front doors: what turns models of other formats into the IR.  Each folder is imported only when its format is asked for."""
