require 'test/unit'

class AddTest < Test::Unit::TestCase
  data('one' => 1, 'two' => 2)
  def test_each(n); assert_equal 1, n; end
  def test_sums; assert_equal 2, 1 + 1; end
  def test_raises; raise 'no'; end
  def test_omitted; omit 'not here'; end
  def test_pending; pend 'later'; end
  test 'in words' do assert true end
end
