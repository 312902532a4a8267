module example.org/other

go 1.20
