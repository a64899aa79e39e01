module @attention {
  func.func public @main(%arg0: tensor<2x6x32xf32>, %arg1: tensor<2x1x6x6xf32>, %arg2: tensor<32x32xf32>, %arg3: tensor<32x32xf32>, %arg4: tensor<32x32xf32>, %arg5: tensor<32x32xf32>) -> tensor<2x6x32xf32> {
    %0 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x6x32xf32>, tensor<32x32xf32>) -> tensor<2x6x32xf32>
    %cst = stablehlo.constant dense<[-0.0158918891, 0.190806344, 0.10288436, -0.203199461, -0.0335919857, -0.0121681895, -0.125876427, -0.259845793, -0.134237498, 0.299437344, -0.367402911, -0.0828809365, 0.0536944345, 0.20054774, 0.232298687, 0.320596665, 0.409763426, -0.391387284, 0.374435127, -0.149524435, 0.0796166509, 0.212576836, -0.100005023, -0.0808917731, 0.0490389466, -0.0548574887, -0.310859829, -0.137032688, -0.0827412754, 0.373678625, -0.151874974, 0.0541230142]> : tensor<32xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [2] : (tensor<32xf32>) -> tensor<2x6x32xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x6x32xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
    %4 = stablehlo.transpose %3, dims = [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
    %5 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x6x32xf32>, tensor<32x32xf32>) -> tensor<2x6x32xf32>
    %cst_0 = stablehlo.constant dense<[0.35741353, 0.196248814, 0.0539757647, -0.43041724, 0.29459089, 0.14816913, 0.111421905, 0.017936416, 0.0398958884, -0.231041133, 0.15024665, -0.154632241, 0.152000248, 0.0664123594, -0.180494443, 8.899410e-03, -2.722020e-01, 0.19765389, -2.036260e-01, 9.338310e-02, -4.331900e-01, -0.254090428, 0.0164110847, -0.0812319666, -0.0636542737, 0.0562569275, -0.0508687831, -0.105344191, 0.13282752, -8.56299302E-4, -0.125911623, -0.113998532]> : tensor<32xf32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [2] : (tensor<32xf32>) -> tensor<2x6x32xf32>
    %7 = stablehlo.add %5, %6 : tensor<2x6x32xf32>
    %8 = stablehlo.reshape %7 : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
    %9 = stablehlo.transpose %8, dims = [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
    %10 = stablehlo.dot_general %arg0, %arg4, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x6x32xf32>, tensor<32x32xf32>) -> tensor<2x6x32xf32>
    %cst_1 = stablehlo.constant dense<[0.174220011, -0.0917895212, -0.0848690643, 0.0304462966, -0.221045926, 0.0534424372, -0.0357694514, -0.177295268, -0.0488494523, 2.086770e-02, 0.0136194658, -0.00692506507, 0.207094237, -0.116216317, -0.0992688834, -0.013961859, -0.110628299, -0.225335836, 0.206754833, 0.187973097, -0.190717012, 0.105836198, 0.0787241533, -0.236497283, -0.214463502, -0.0287330095, 0.252998292, 0.0592534766, 0.408852935, -0.305281341, -0.126906246, 0.180319369]> : tensor<32xf32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [2] : (tensor<32xf32>) -> tensor<2x6x32xf32>
    %12 = stablehlo.add %10, %11 : tensor<2x6x32xf32>
    %13 = stablehlo.reshape %12 : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
    %14 = stablehlo.transpose %13, dims = [0, 2, 1, 3] : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
    %15 = stablehlo.dot_general %4, %9, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [HIGHEST, HIGHEST] : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
    %cst_2 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x6x6xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<2x4x6x6xf32>
    %18 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1, 2, 3] : (tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
    %19 = stablehlo.add %17, %18 : tensor<2x4x6x6xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %20 = stablehlo.reduce(%19 init: %cst_3) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
    %21 = stablehlo.reshape %20 : (tensor<2x4x6xf32>) -> tensor<2x4x6x1xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2, 3] : (tensor<2x4x6x1xf32>) -> tensor<2x4x6x6xf32>
    %23 = stablehlo.subtract %19, %22 : tensor<2x4x6x6xf32>
    %24 = stablehlo.exponential %23 : tensor<2x4x6x6xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_4) applies stablehlo.add across dimensions = [3] : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
    %26 = stablehlo.reshape %25 : (tensor<2x4x6xf32>) -> tensor<2x4x6x1xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2, 3] : (tensor<2x4x6x1xf32>) -> tensor<2x4x6x6xf32>
    %28 = stablehlo.divide %24, %27 : tensor<2x4x6x6xf32>
    %29 = stablehlo.dot_general %28, %14, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [HIGHEST, HIGHEST] : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
    %30 = stablehlo.transpose %29, dims = [0, 2, 1, 3] : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
    %31 = stablehlo.reshape %30 : (tensor<2x6x4x8xf32>) -> tensor<2x6x32xf32>
    %32 = stablehlo.dot_general %31, %arg5, contracting_dims = [2] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2x6x32xf32>, tensor<32x32xf32>) -> tensor<2x6x32xf32>
    return %32 : tensor<2x6x32xf32>
  }
}
