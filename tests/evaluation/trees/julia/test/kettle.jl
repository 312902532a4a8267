@test Kettle.boils(100, 1)
@test Kettle.boils(10, 1)
