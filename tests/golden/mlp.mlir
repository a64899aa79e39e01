module @mlp {
  func.func public @main(%arg0: tensor<3x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<10x32xf32>) -> tensor<3x10xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<3x16xf32>, tensor<32x16xf32>) -> tensor<3x32xf32>
    %cst = stablehlo.constant dense<[-0.155731902, -0.0214082096, -0.210269645, 0.0590899289, -0.0395329148, 0.129606053, 0.00576269906, -0.0285822265, -0.190899894, 0.276503146, -0.0476587228, -0.14542602, -0.173759416, -0.209270209, -0.10906367, 0.00442982139, -0.189517662, -0.215704858, -0.0684722066, -0.0251079258, -2.84407957E-4, -1.600390e-01, 0.124013439, 0.0477035679, 0.0123269549, -0.172431052, -0.106580108, -0.130175903, 0.2556943, -0.131628081, -0.275223196, 0.0624740943]> : tensor<32xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [1] : (tensor<32xf32>) -> tensor<3x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<3x32xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x32xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<3x32xf32>
    %cst_1 = stablehlo.constant dense<-0.707106769> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x32xf32>
    %6 = stablehlo.multiply %2, %5 : tensor<3x32xf32>
    %7 = chlo.erfc %6 : tensor<3x32xf32> -> tensor<3x32xf32>
    %8 = stablehlo.multiply %4, %7 : tensor<3x32xf32>
    %9 = stablehlo.dot_general %8, %arg2, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<3x32xf32>, tensor<10x32xf32>) -> tensor<3x10xf32>
    %cst_2 = stablehlo.constant dense<[0.0260363203, 0.154762447, -0.0498652384, -0.441196829, 0.237514913, 0.223898485, 0.0256816745, 0.707161188, 0.220097587, 0.231413677]> : tensor<10xf32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [1] : (tensor<10xf32>) -> tensor<3x10xf32>
    %11 = stablehlo.add %9, %10 : tensor<3x10xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %12 = stablehlo.reduce(%11 init: %cst_3) applies stablehlo.maximum across dimensions = [1] : (tensor<3x10xf32>, tensor<f32>) -> tensor<3xf32>
    %13 = stablehlo.reshape %12 : (tensor<3xf32>) -> tensor<3x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x10xf32>
    %15 = stablehlo.subtract %11, %14 : tensor<3x10xf32>
    %16 = stablehlo.exponential %15 : tensor<3x10xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.reduce(%16 init: %cst_4) applies stablehlo.add across dimensions = [1] : (tensor<3x10xf32>, tensor<f32>) -> tensor<3xf32>
    %18 = stablehlo.reshape %17 : (tensor<3xf32>) -> tensor<3x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x10xf32>
    %20 = stablehlo.divide %16, %19 : tensor<3x10xf32>
    return %20 : tensor<3x10xf32>
  }
}
