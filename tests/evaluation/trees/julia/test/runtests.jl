using Greet, Test
using Test: DefaultTestSet

include("helpers.jl")
@test greet("Ada") == "Hello Ada"
include("broken.jl")
include("syntax.jl")

@testset "All" begin
    @testset "greet" begin
        include("greet.jl")
    end
    for name in ["a", "b"]
        include("$name.jl")
    end
end

@testset "outer" begin
    @testset DefaultTestSet "of another type" begin
        @test true
        @testset "deep" begin
            @test greet("Ada") == "Hello Bob"
            @test_broken false
        end
        @testset "nothing" begin end
    end
end

@testset "broken" begin
    @test_broken greet("Ada") == "Hello Bob"
    @test_skip greet(1)
end

@testset "no longer broken" begin
    @test_broken greet("Ada") == "Hello Ada"
end

@testset "includes that fail" begin
    @test_throws LoadError include("bad.jl")
    @test_throws BoundsError greet("Ada")
end

@testset "x = $x" for x in 1:2
    @test x == 1
end

@testset "empty" begin end

@testset "stops" begin
    error("it stops \"here\"\n\tnow")
end

@testset "logs" begin
    @test_logs (:info, "a") (@info "b")
end

@testset "last" begin
    @test sqrt(-1) == 1
end
