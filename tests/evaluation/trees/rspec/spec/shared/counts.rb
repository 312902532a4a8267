RSpec.shared_examples('counts') do
  it('counts') { expect([1].size).to eq 1 }
end
