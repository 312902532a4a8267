local lu = require("luaunit")
local missing = require("missing")

os.exit(lu.LuaUnit.run())
