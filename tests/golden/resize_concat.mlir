module @resize_concat {
  func.func public @main(%arg0: tensor<1x4x3x4xf32>, %arg1: tensor<1x2x6x8xf32>) -> tensor<1x6x6x8xf32> {
    %c = stablehlo.constant dense<[0, 0, 1, 1, 2, 2]> : tensor<6xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %1 = stablehlo.compare LT, %c, %0 : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi1>
    %c_1 = stablehlo.constant dense<3> : tensor<6xi64>
    %2 = stablehlo.add %c, %c_1 : tensor<6xi64>
    %3 = stablehlo.select %1, %2, %c : tensor<6xi1>, tensor<6xi64>
    %c_2 = stablehlo.constant dense<0> : tensor<6xi64>
    %4 = stablehlo.maximum %3, %c_2 : tensor<6xi64>
    %c_3 = stablehlo.constant dense<2> : tensor<6xi64>
    %5 = stablehlo.minimum %4, %c_3 : tensor<6xi64>
    %6 = stablehlo.convert %5 : (tensor<6xi64>) -> tensor<6xi32>
    %7 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 1, 4>}> : (tensor<1x4x3x4xf32>, tensor<6xi32>) -> tensor<1x4x6x4xf32>
    %c_4 = stablehlo.constant dense<[0, 0, 1, 1, 2, 2, 3, 3]> : tensor<8xi64>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %9 = stablehlo.compare LT, %c_4, %8 : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %c_5 = stablehlo.constant dense<4> : tensor<8xi64>
    %10 = stablehlo.add %c_4, %c_5 : tensor<8xi64>
    %11 = stablehlo.select %9, %10, %c_4 : tensor<8xi1>, tensor<8xi64>
    %c_6 = stablehlo.constant dense<0> : tensor<8xi64>
    %12 = stablehlo.maximum %11, %c_6 : tensor<8xi64>
    %c_7 = stablehlo.constant dense<3> : tensor<8xi64>
    %13 = stablehlo.minimum %12, %c_7 : tensor<8xi64>
    %14 = stablehlo.convert %13 : (tensor<8xi64>) -> tensor<8xi32>
    %15 = "stablehlo.gather"(%7, %14) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [3], start_index_map = [3], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 6, 1>}> : (tensor<1x4x6x4xf32>, tensor<8xi32>) -> tensor<1x4x6x8xf32>
    %16 = stablehlo.concatenate %15, %arg1, dim = 1 : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>) -> tensor<1x6x6x8xf32>
    return %16 : tensor<1x6x6x8xf32>
  }
}
