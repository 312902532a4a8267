require 'minitest/autorun'

class AddTest < Minitest::Test
  def test_sums; assert_equal 2, 1 + 1; end
  def test_sums_wrongly; assert_equal 3, 1 + 1; end
  def test_raises; raise 'no'; end
  def test_later; skip 'later'; end
end

describe 'adding' do
  it('sums up') { _(1 + 1).must_equal 2 }
  describe('twice') { it('sums up') { _(1 + 2).must_equal 3 } }
end
