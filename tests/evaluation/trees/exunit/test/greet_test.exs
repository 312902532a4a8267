defmodule GreetTest do
  use ExUnit.Case
  test "sums \"up\"", do: assert Greet.add(1, 1) == 2
  test "sums wrongly", do: assert Greet.add(1, 1) == 3
  test "raises", do: raise "no"
  @tag :skip
  test "later", do: assert false
  @tag :slow
  test "slow", do: assert false
  describe "zero" do
    test "is neutral", do: assert Greet.add(1, 0) == 1
  end
end

defmodule Greet.SetupTest do
  use ExUnit.Case
  setup_all do
    raise "no database"
  end
  test "never", do: assert true
end
