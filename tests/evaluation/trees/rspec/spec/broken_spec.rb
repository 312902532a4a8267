require 'gone'
