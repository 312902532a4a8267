@testset "x" begin
    1 +
