module @conv_bn_relu {
  func.func public @main(%arg0: tensor<2x3x16x16xf32>, %arg1: tensor<3x3x3x8xf32>, %arg2: tensor<8x1x1xf32>) -> tensor<2x8x8x8xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x3x16x16xf32>, tensor<3x3x3x8xf32>) -> tensor<2x8x8x8xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1, 2, 3] : (tensor<8x1x1xf32>) -> tensor<2x8x8x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x8x8x8xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8x8x8xf32>
    %4 = stablehlo.maximum %2, %3 : tensor<2x8x8x8xf32>
    return %4 : tensor<2x8x8x8xf32>
  }
}
