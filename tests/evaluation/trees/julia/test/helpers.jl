check(x) = @test x
