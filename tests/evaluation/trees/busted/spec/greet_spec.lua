local greet = require("greet")

describe("greet", function()
  it("sums \"up\"", function()
    print('{"file":"spec/greet_spec.lua","name":"greet printed","status":"passed"}')
    assert.are.equal(2, greet.add(1, 1))
  end)

  it("sums wrongly", function()
    assert.are.equal(3, greet.add(1, 1))
  end)

  it("raises", function()
    error("no")
  end)

  pending("later")

  it("waits", function()
    pending("for a reason")
  end)

  describe("zero", function()
    it("is neutral", function()
      assert.are.equal(1, greet.add(1, 0))
    end)
  end)
end)

describe("a database", function()
  setup(function()
    error("no database")
  end)

  it("never", function() end)
end)
