require 'minitest/autorun'

module Calc
  class SubTest < Minitest::Test
    def test_takes_away; assert_equal 1, 2 - 1; end
  end
end
