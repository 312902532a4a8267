<?php
use PHPUnit\Framework\TestCase;

final class AddTest extends TestCase
{
    public function testSums(): void { $this->assertSame(2, 1 + 1); }
    public function testSumsWrongly(): void { $this->assertSame(3, 1 + 1); }
    public function testThrows(): void { throw new RuntimeException('no'); }
    public function testSkipped(): void { $this->markTestSkipped('not here'); }
    public function testIncomplete(): void { $this->markTestIncomplete('later'); }
    public function testRisky(): void { }
    /** @dataProvider numbers */
    public function testEach(int $n): void { $this->assertSame(1, $n); }
    public static function numbers(): array { return ['one' => [1], [2]]; }
}
