module @embedding {
  func.func public @main(%arg0: tensor<2x7xi64>, %arg1: tensor<50x16xf32>) -> tensor<2x7x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<2x7xi64>
    %1 = stablehlo.compare LT, %arg0, %0 : (tensor<2x7xi64>, tensor<2x7xi64>) -> tensor<2x7xi1>
    %c_0 = stablehlo.constant dense<50> : tensor<2x7xi64>
    %2 = stablehlo.add %arg0, %c_0 : tensor<2x7xi64>
    %3 = stablehlo.select %1, %2, %arg0 : tensor<2x7xi1>, tensor<2x7xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<2x7xi64>
    %4 = stablehlo.maximum %3, %c_1 : tensor<2x7xi64>
    %c_2 = stablehlo.constant dense<49> : tensor<2x7xi64>
    %5 = stablehlo.minimum %4, %c_2 : tensor<2x7xi64>
    %6 = stablehlo.convert %5 : (tensor<2x7xi64>) -> tensor<2x7xi32>
    %7 = "stablehlo.gather"(%arg1, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 16>}> : (tensor<50x16xf32>, tensor<2x7xi32>) -> tensor<2x7x16xf32>
    %cst = stablehlo.constant dense<"0x6DDD16BE184F5F3E276C44BD677D173E080D053FA12C57BCA330C6BE34AD3BBD83B82E3D4426F9BDD3764C3EF462E4BEA825AABD360EBE3D7253503EF1A3013E272F053E56B19DBCC86CDBBD03238A3DD1AD073FB045E9BEED8E74BD5C41D03EEF6EC53DC3FB073F23BCF33D7EEB0BBC3083E03D75DCDB3C34D850BD1271DF3B9593B03E671684BDC1D7713EE14A8C3D695856BD99E136BE554259BE1B10AABE8FE7E4BE4F09A83E58767EBECB897C3E2B5DB9BCB25E97BE7C6B12BD687D7CBD4979ECBDC05857BE54A1E1BCB831B6BE7588333EC444B13E86C6DB3E488D41BE168A44BE8A1C3E3D3B379DBCEC88B5BE899E4EBEA32D163E7E8D57BDD3BF153E8BD598BE55CA243EBC478EBE9BF171BE406F8D3D6B5E283EA3B50D3E2B8AEBBD942A96BE19C0C73D66DAA8BD9F7FBE3D49973B3C1E59F0BDA2CC51BE77A7ED3D94B5E23DD3AD04BE40F09FBC8B2A303EF6DB063E0FF4B93CB1AB743DCDC3C7BA4EAD543EB130C8BE205696BD12EC5B3EAF400A3F705A7D3E53D5D13E44E5F5BD6E668EBE42EF163E13950A3E2376DDBDBB2B85BD88F39EBEABA19D3E8CDDC83C18550EBEA7288BBE5C6468BDDC81343E76B67ABB3D28E2BE9EA9E23D19FD9F3E"> : tensor<7x16xf32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [1, 2] : (tensor<7x16xf32>) -> tensor<2x7x16xf32>
    %9 = stablehlo.add %7, %8 : tensor<2x7x16xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %11 = stablehlo.reshape %10 : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %cst_4 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %13 = stablehlo.divide %11, %12 : tensor<2x7x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %15 = stablehlo.subtract %9, %14 : tensor<2x7x16xf32>
    %16 = stablehlo.multiply %15, %15 : tensor<2x7x16xf32>
    %17 = stablehlo.reduce(%16 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x7x16xf32>, tensor<f32>) -> tensor<2x7xf32>
    %18 = stablehlo.reshape %17 : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %20 = stablehlo.divide %18, %19 : tensor<2x7x1xf32>
    %cst_5 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x7x1xf32>
    %22 = stablehlo.add %20, %21 : tensor<2x7x1xf32>
    %23 = stablehlo.rsqrt %22 : tensor<2x7x1xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<2x7x1xf32>) -> tensor<2x7x16xf32>
    %25 = stablehlo.multiply %15, %24 : tensor<2x7x16xf32>
    %cst_6 = stablehlo.constant dense<[5.000000e-01, 0.566666663, 0.633333325, 0.699999988, 0.766666651, 0.833333313, 0.899999976, 0.966666638, 1.0333333, 1.100000e+00, 1.16666663, 1.23333335, 1.300000e+00, 1.36666667, 1.43333328, 1.500000e+00]> : tensor<16xf32>
    %26 = stablehlo.broadcast_in_dim %cst_6, dims = [2] : (tensor<16xf32>) -> tensor<2x7x16xf32>
    %27 = stablehlo.multiply %25, %26 : tensor<2x7x16xf32>
    %cst_7 = stablehlo.constant dense<[0.0422657803, -0.158621907, -0.0816245824, -0.345221221, 0.235349864, -0.109434664, 0.0598785542, 0.166125938, -0.0567711145, 0.086745955, 0.0881136134, -0.163765937, -0.0259422157, 0.430567384, -0.226940066, 0.17637679]> : tensor<16xf32>
    %28 = stablehlo.broadcast_in_dim %cst_7, dims = [2] : (tensor<16xf32>) -> tensor<2x7x16xf32>
    %29 = stablehlo.add %27, %28 : tensor<2x7x16xf32>
    return %29 : tensor<2x7x16xf32>
  }
}
