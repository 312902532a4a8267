local lu = require("luaunit")
local greet = require("greet")

TestGreet = {}

function TestGreet:test_sums()
  print('<testcase classname="TestGreet" name="TestGreet.test_printed"/>')
  lu.assertEquals(greet.add(1, 1), 2)
end

function TestGreet:test_sums_wrongly()
  lu.assertEquals(greet.add(1, 1), 3)
end

function TestGreet:test_raises()
  error("no")
end

function TestGreet:test_later()
  lu.skip("not here")
end

os.exit(lu.LuaUnit.run())
