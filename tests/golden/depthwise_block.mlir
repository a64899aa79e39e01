module @depthwise_block {
  func.func public @main(%arg0: tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32> {
    %cst = stablehlo.constant dense<"0x2A52773EDDF5193E2955D9BD500DA63E1EAD0EBE1D65BD3AC26FF33DB1B48ABEA01BF33E57AFDC3C744CD3BD77EBD2BD7207D83E462A313DA50674BE58605E3E157B8CBC9BC22ABD2A3E44BD6473073F20409A3CC9CE39BE3E5952BE66594F3E28900C3E0A1CF6BD179C7F3C58ACD3BD7854213E823523BE52FFD0BD95DD813D79298FBEC229753DDAECDC3DA8C48ABDDF3A12BECA740CBF4A15423D853CB0BE9871E6BDD20B00BDD3A1073DB644F7BDED70003EDF8E2DBDB1F682BE61C59DBDCECC223E6A884FBEBAB50BBE0892B4BE7BFA813EC779273D26C88B3E33EBE23D0000333EB314CF3DF23380BEDA67863E5C7D30BD6914BCBD90684ABD59866A3D4006B9BE5FD7A53D0A0DF53C976DCA3DA1338E3E5F7B8C3E1CD9C33C26689C3D162B263CEBFB003E586E083E618A78BDC914F6BD6C499C3E168D2B3ED182A03E31C10B3D645830BE26FF87BD5E0540BCD7E43ABE50418CBE28D5C43CDBE69A3E328B78BD18E1DD3D704E98BC8BA27D3E5E379D3E410B403D3C5D31BE0DB7B13E87E38C3E702E08BEB6CE84BE0FFF84BD56856E3D9CA2EBBD3DE667BE42D3E43C92F91BBEDEB7413E46861E3E23C2433E8097AFBE9EF9873E9D0BD63D14A48BBCD67D873E054A21BE6851BFBD111621BE2486F5BBE2491DBE42AB86BE99AF8FBDC5EA56BEEB2F95BD4C01D43D72E13D3B85E4923A24452CBE8BE4FB3DC3D1BDBEAB0A50BEDA1ADB3D2C291BBED6F72ABEE051A8BDB6C5353E9F7AB33D307DA43EF5898B3C8F572C3F7FC99CBD75377D3D1A018A3E5C92373E3DD104BF74C358BC"> : tensor<16x1x3x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.pad %arg0, %cst_0, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<2x16x8x8xf32>, tensor<f32>) -> tensor<2x16x10x10xf32>
    %1 = stablehlo.transpose %cst, dims = [2, 3, 1, 0] : (tensor<16x1x3x3xf32>) -> tensor<3x3x1x16xf32>
    %2 = stablehlo.slice %1 [0:1, 0:1, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %5 = stablehlo.slice %0 [0:2, 0:16, 0:8, 0:8] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<2x16x8x8xf32>
    %7 = stablehlo.slice %1 [0:1, 1:2, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %10 = stablehlo.slice %0 [0:2, 0:16, 0:8, 1:9] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<2x16x8x8xf32>
    %12 = stablehlo.add %6, %11 : tensor<2x16x8x8xf32>
    %13 = stablehlo.slice %1 [0:1, 2:3, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %16 = stablehlo.slice %0 [0:2, 0:16, 0:8, 2:10] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<2x16x8x8xf32>
    %18 = stablehlo.add %12, %17 : tensor<2x16x8x8xf32>
    %19 = stablehlo.slice %1 [1:2, 0:1, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %20 = stablehlo.reshape %19 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %22 = stablehlo.slice %0 [0:2, 0:16, 1:9, 0:8] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %23 = stablehlo.multiply %22, %21 : tensor<2x16x8x8xf32>
    %24 = stablehlo.add %18, %23 : tensor<2x16x8x8xf32>
    %25 = stablehlo.slice %1 [1:2, 1:2, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %26 = stablehlo.reshape %25 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %28 = stablehlo.slice %0 [0:2, 0:16, 1:9, 1:9] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %29 = stablehlo.multiply %28, %27 : tensor<2x16x8x8xf32>
    %30 = stablehlo.add %24, %29 : tensor<2x16x8x8xf32>
    %31 = stablehlo.slice %1 [1:2, 2:3, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %32 = stablehlo.reshape %31 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %34 = stablehlo.slice %0 [0:2, 0:16, 1:9, 2:10] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %35 = stablehlo.multiply %34, %33 : tensor<2x16x8x8xf32>
    %36 = stablehlo.add %30, %35 : tensor<2x16x8x8xf32>
    %37 = stablehlo.slice %1 [2:3, 0:1, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %38 = stablehlo.reshape %37 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %40 = stablehlo.slice %0 [0:2, 0:16, 2:10, 0:8] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %41 = stablehlo.multiply %40, %39 : tensor<2x16x8x8xf32>
    %42 = stablehlo.add %36, %41 : tensor<2x16x8x8xf32>
    %43 = stablehlo.slice %1 [2:3, 1:2, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %44 = stablehlo.reshape %43 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %46 = stablehlo.slice %0 [0:2, 0:16, 2:10, 1:9] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %47 = stablehlo.multiply %46, %45 : tensor<2x16x8x8xf32>
    %48 = stablehlo.add %42, %47 : tensor<2x16x8x8xf32>
    %49 = stablehlo.slice %1 [2:3, 2:3, 0:1, 0:16] : (tensor<3x3x1x16xf32>) -> tensor<1x1x1x16xf32>
    %50 = stablehlo.reshape %49 : (tensor<1x1x1x16xf32>) -> tensor<16xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [1] : (tensor<16xf32>) -> tensor<2x16x8x8xf32>
    %52 = stablehlo.slice %0 [0:2, 0:16, 2:10, 2:10] : (tensor<2x16x10x10xf32>) -> tensor<2x16x8x8xf32>
    %53 = stablehlo.multiply %52, %51 : tensor<2x16x8x8xf32>
    %54 = stablehlo.add %48, %53 : tensor<2x16x8x8xf32>
    %cst_1 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x16x8x8xf32>
    %56 = stablehlo.divide %54, %55 : tensor<2x16x8x8xf32>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x16x8x8xf32>
    %58 = stablehlo.add %56, %57 : tensor<2x16x8x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16x8x8xf32>
    %60 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x16x8x8xf32>
    %61 = stablehlo.maximum %58, %59 : tensor<2x16x8x8xf32>
    %62 = stablehlo.minimum %61, %60 : tensor<2x16x8x8xf32>
    %63 = stablehlo.multiply %54, %62 : tensor<2x16x8x8xf32>
    %cst_4 = stablehlo.constant dense<"0x8D78DFBDCAA4E1BDDDF847BE941C893D437740BEFC4D29BE4BFD1EBDA474F9BD52848C3C896B343DDC3864BE99D6233ECCE5EBBD86E93EBD21F46B3EDDA9563DCBF4803D226B45BE67E30FBF5750D33C15DA1DBEADF29C3BB130103ED6C2F63C35035FBD4CFC8C3E3D5569BEC4E6B1BB167FA6BC47F4C73CC79608BDD5FDB33DB4E8403C1AF09D3CE166253D323C3B3D15302E3EC7493A3D2D7D983EB2892EBEF3BD133DFCF401BEF7727F3CBE6D973D040A8FBED0886EBE2E11223EC099693DBE20DFBCF8E5C63B5EF6C7BE824130BEAED582BE2D360B3E96C1B6BD586062BE5E2F0A3D6A8B39BE026F8B3D9A97EABDA877213E802F5EBDCF2E333EED88063E0990A0BD88638D3E1B4BC1BE1817303EB3C4D73EF315063FFD5F5ABDD5DE113E58008B3DDB631D3EE413C63DD22C043FBA884FBD4E0615BD1EAD23BDBCB7B8BC70B02F3E845E46BD8261CABD25030E3DAAF85FBE3989013E2FE5603E74BBFCBC184801BDFB0473BEB648C23D6719EA3D170C2A3DBF4DAFBBA24B013E498FE43C67EC433D85E50B3C66F5BFBE178523BDA9379FBE70F54BBEEE259B3EF4044E3E1631233F4F4A74BE05DC473EE2E29EBD8B63873EE4A127BEE80E45BEF03218BDC2A6A3BE0821993BE8DF743DA4EBDF3D006E973E3C28563D828B71BE9A168BBD6CEBDDBC9C81043F849FFCBD4C44D43DBCA71BBD5B8AB33D6D571ABE94D8E0BCC70B92BDE922043E61BEFABDEFF1FEBD052DF5BEEA7D0B3E6B7650BEA008BFBD1D5EA23E4270AE3EED6DB3BD161B233D9C87C8BC2F4361BEF8B348BE0170F1BDDE83FBBCDCA96B3EE31E043DD3A1063E9C79A1BD824385BEEA837B3D071FB13E00A4EE3D4E121E3E2BDC51BEEB639FBDD7A6AC3DB9BB5ABD45ADE3BEE4A6AABEB1FB4A3EA1C78E3C9A6786BE331DDFBD02CC5EBE525AB6BD82A9F1BD684134BC32B7163E707E0A3F3556CD3EF6655FBD7E1F25BE4EFA903E4FF7AABE4483DBBEDC06713DF206473D7294993E80F92B3E585C6ABC316912BDF0ED66BBFA1245BE809C6F3C2492003F7E9B92BD9814A3BE7F42CB3DFBDCDF3E4AD0A8BD06F5993EAA57043E1518133E62FC06BEC742273EDEF72E3CF0AD87BDBF74763DA11696BD5880CDBC7A9FCCBE14FA7A3EF24C87BE7A7B3CBE13347D3DC5030E3E78891E3EDD793C3EE07984BE5CDE1D3D2DF9863DAA5A8DBEC1AC9FBD79A3823CB4B147BDC56A833BAE76B6BD7EE9D8BD39B70EBEFA067D3E364E89BEE7725CBD63E80EBED8274C3D115FEE3D83C016BFECA1B03D22912DBD65BB403E9CCB5D3D26EE243E6EAAE73D725095BE4C0846BEC1BBC3BD89FE02BF38792BBEDF5F213ED5F05A3E11B020BEF980FB3DE92118BEA92ADBBDA69A163E78EAA93D35C371BEAD5C10BE93522EBDD8E7D4BD728B96BDA8BFE8BE7F1AADBB9152023D849B48BE9090953E"> : tensor<16x16x1x1xf32>
    %64 = stablehlo.reshape %cst_4 : (tensor<16x16x1x1xf32>) -> tensor<16x16xf32>
    %65 = stablehlo.reshape %63 : (tensor<2x16x8x8xf32>) -> tensor<2x16x64xf32>
    %66 = stablehlo.broadcast_in_dim %64, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<2x16x16xf32>
    %67 = stablehlo.dot_general %66, %65, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x16x16xf32>, tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %68 = stablehlo.reshape %67 : (tensor<2x16x64xf32>) -> tensor<2x16x8x8xf32>
    %cst_5 = stablehlo.constant dense<[[[-0.0158769302]], [[-0.367131263]], [[-0.0433302596]], [[0.145169795]], [[0.225507751]], [[-0.202617466]], [[-0.374286711]], [[-0.00676961942]], [[0.0263889711]], [[0.15624842]], [[0.0901925117]], [[-0.0283155888]], [[-0.046487648]], [[0.0927786305]], [[-1.379750e-01]], [[-0.179838955]]]> : tensor<16x1x1xf32>
    %69 = stablehlo.broadcast_in_dim %cst_5, dims = [1, 2, 3] : (tensor<16x1x1xf32>) -> tensor<2x16x8x8xf32>
    %70 = stablehlo.add %68, %69 : tensor<2x16x8x8xf32>
    %71 = stablehlo.add %arg0, %70 : tensor<2x16x8x8xf32>
    return %71 : tensor<2x16x8x8xf32>
  }
}
