module @qdq_convolution {
  func.func public @main(%arg0: tensor<1x3x8x8xf32>, %arg1: tensor<3x3x3x8xf32>) -> tensor<1x8x8x8xf32> {
    %cst = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<1x3x8x8xf32>
    %2 = stablehlo.round_nearest_even %1 : tensor<1x3x8x8xf32>
    %cst_0 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %4 = stablehlo.add %2, %3 : tensor<1x3x8x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<2.550000e+02> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %7 = stablehlo.maximum %4, %5 : tensor<1x3x8x8xf32>
    %8 = stablehlo.minimum %7, %6 : tensor<1x3x8x8xf32>
    %9 = stablehlo.convert %8 : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xi32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %11 = stablehlo.compare LE, %8, %10 : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xi1>
    %cst_3 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %13 = stablehlo.compare GE, %8, %12 : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xi1>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x3x8x8xi32>
    %15 = stablehlo.select %11, %14, %9 : tensor<1x3x8x8xi1>, tensor<1x3x8x8xi32>
    %c_4 = stablehlo.constant dense<255> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<1x3x8x8xi32>
    %17 = stablehlo.select %13, %16, %15 : tensor<1x3x8x8xi1>, tensor<1x3x8x8xi32>
    %18 = stablehlo.compare NE, %8, %8 : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xi1>
    %19 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x3x8x8xi32>
    %20 = stablehlo.select %18, %19, %17 : tensor<1x3x8x8xi1>, tensor<1x3x8x8xi32>
    %21 = stablehlo.convert %20 : (tensor<1x3x8x8xi32>) -> tensor<1x3x8x8xui8>
    %22 = stablehlo.convert %21 : (tensor<1x3x8x8xui8>) -> tensor<1x3x8x8xi32>
    %c_5 = stablehlo.constant dense<3> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1x3x8x8xi32>
    %24 = stablehlo.subtract %22, %23 : tensor<1x3x8x8xi32>
    %25 = stablehlo.convert %24 : (tensor<1x3x8x8xi32>) -> tensor<1x3x8x8xf32>
    %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x3x8x8xf32>
    %27 = stablehlo.multiply %25, %26 : tensor<1x3x8x8xf32>
    %28 = stablehlo.convolution(%27, %arg1) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<1x3x8x8xf32>, tensor<3x3x3x8xf32>) -> tensor<1x8x8x8xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %30 = stablehlo.divide %28, %29 : tensor<1x8x8x8xf32>
    %31 = stablehlo.round_nearest_even %30 : tensor<1x8x8x8xf32>
    %32 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %33 = stablehlo.add %31, %32 : tensor<1x8x8x8xf32>
    %34 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %35 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %36 = stablehlo.maximum %33, %34 : tensor<1x8x8x8xf32>
    %37 = stablehlo.minimum %36, %35 : tensor<1x8x8x8xf32>
    %38 = stablehlo.convert %37 : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xi32>
    %39 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %40 = stablehlo.compare LE, %37, %39 : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xi1>
    %41 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %42 = stablehlo.compare GE, %37, %41 : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xi1>
    %43 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x8x8x8xi32>
    %44 = stablehlo.select %40, %43, %38 : tensor<1x8x8x8xi1>, tensor<1x8x8x8xi32>
    %45 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<1x8x8x8xi32>
    %46 = stablehlo.select %42, %45, %44 : tensor<1x8x8x8xi1>, tensor<1x8x8x8xi32>
    %47 = stablehlo.compare NE, %37, %37 : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xi1>
    %48 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x8x8x8xi32>
    %49 = stablehlo.select %47, %48, %46 : tensor<1x8x8x8xi1>, tensor<1x8x8x8xi32>
    %50 = stablehlo.convert %49 : (tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xui8>
    %51 = stablehlo.convert %50 : (tensor<1x8x8x8xui8>) -> tensor<1x8x8x8xi32>
    %52 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1x8x8x8xi32>
    %53 = stablehlo.subtract %51, %52 : tensor<1x8x8x8xi32>
    %54 = stablehlo.convert %53 : (tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xf32>
    %55 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<1x8x8x8xf32>
    %56 = stablehlo.multiply %54, %55 : tensor<1x8x8x8xf32>
    return %56 : tensor<1x8x8x8xf32>
  }
}
