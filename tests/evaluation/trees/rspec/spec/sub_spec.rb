require_relative 'shared/counts'

RSpec.describe 'sub' do
  include_examples 'counts'
end
