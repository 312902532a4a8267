<?php
namespace Greet\Deep;

use PHPUnit\Framework\TestCase;

final class SubTest extends TestCase
{
    public function testTakesAway(): void { $this->assertSame(1, 2 - 1); }
}
