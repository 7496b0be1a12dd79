// Random numbers from a seed, for tests with random input (xorshift). In: a seed. Out: numbers from 0 to below 1.

export function randomFrom(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 4294967296;
  };
}
