require_relative 'shared/counts'

RSpec.describe 'add' do
  it('sums up') { expect(1 + 1).to eq 2 }
  it('sums wrongly') { expect(1 + 1).to eq 3 }
  it('raises') { raise 'no' }
  it('is later')
  xit('is skipped') { expect(1).to eq 2 }
  it('is known') { pending 'a bug'; expect(1).to eq 2 }
  it { expect(1).to eq 1 }
  include_examples 'counts'
end
