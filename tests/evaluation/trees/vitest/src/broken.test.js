import { describe, expect, it, test } from 'vitest';
import gone from './gone.js';
test('never', () => gone());
