@testset "in b" begin
    @test undefined_name
end
@test true
