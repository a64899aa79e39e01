module @if_branches {
  func.func public @main(%arg0: tensor<2x8xf32>, %arg1: tensor<i1>) -> tensor<2x8xf32> {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<2x8xf32>
    %2 = "stablehlo.if"(%arg1) ({
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.reduce(%1 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
      %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<2x1xf32>
      %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
      %6 = stablehlo.divide %4, %5 : tensor<2x1xf32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
      %8 = stablehlo.subtract %1, %7 : tensor<2x8xf32>
      stablehlo.return %8 : tensor<2x8xf32>
    }, {
      %3 = stablehlo.tanh %1 : tensor<2x8xf32>
      stablehlo.return %3 : tensor<2x8xf32>
    }) : (tensor<i1>) -> tensor<2x8xf32>
    return %2 : tensor<2x8xf32>
  }
}
