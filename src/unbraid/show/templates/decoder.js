// Runs a decoder as `unbraid.runs.live.program` describes it: a list of steps over flat arrays, for one image.

const ROWS = 4, COLUMNS = 2; // of a product, whose sums are kept in registers
const CACHED = 16384; // numbers that stay close to the processor

async function unpackConstants(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const halves = Float32Array.from({ length: 65536 }, (_, bits) => half(bits));
  let start = 0;
  return packed.arrays.map(({ kind, length }) => {
    const size = kind === "half" ? 2 : 4, bits = new Uint32Array(length);
    // The first bytes of all numbers come first, then the second ones: alike bytes in a row pack better.
    for (let plane = 0; plane < size; plane++, start += length) {
      for (let i = 0; i < length; i++) bits[i] |= planes[start + i] << (8 * plane);
    }
    if (kind === "half") return Float32Array.from(bits, (each) => halves[each]);
    return kind === "single" ? new Float32Array(bits.buffer) : new Int32Array(bits.buffer);
  });
}

function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

// A matrix (rows, inner) in blocks of so many rows, and within a block the rows of one column side by side.
function inBlocks(size, rows, inner, entry) {
  const blocks = new Float64Array(upTo(size, rows) * inner);
  for (let i = 0; i < rows; i++) {
    const base = (i - (i % size)) * inner + (i % size);
    for (let k = 0; k < inner; k++) blocks[base + size * k] = entry(i, k);
  }
  return blocks;
}

const upTo = (size, count) => Math.ceil(count / size) * size;

// out (rows, columns) = weights (rows, inner) @ values (inner, columns), given in blocks of rows and of columns.
// `out` has room for whole blocks of rows; `first` is the place of the first block of weights.
function product(weights, first, values, out, rows, inner, columns) {
  const tile = COLUMNS * Math.max(1, Math.floor(CACHED / (COLUMNS * inner)));
  for (let left = 0; left < columns; left += tile) {
    const right = Math.min(columns, left + tile);
    for (let i = 0; i < rows; i += ROWS) {
      for (let j = left, b = left * inner, at = i * columns + left; j < right; j += COLUMNS, at += COLUMNS) {
        let c00 = 0, c01 = 0, c10 = 0, c11 = 0, c20 = 0, c21 = 0, c30 = 0, c31 = 0;
        for (let k = 0, a = first + i * inner; k < inner; k++, a += ROWS, b += COLUMNS) {
          const a0 = weights[a], a1 = weights[a + 1], a2 = weights[a + 2], a3 = weights[a + 3];
          const b0 = values[b], b1 = values[b + 1];
          c00 += a0 * b0; c01 += a0 * b1;
          c10 += a1 * b0; c11 += a1 * b1;
          c20 += a2 * b0; c21 += a2 * b1;
          c30 += a3 * b0; c31 += a3 * b1;
        }
        out[at] = c00; out[at + columns] = c10; out[at + 2 * columns] = c20; out[at + 3 * columns] = c30;
        if (j + 1 < columns) {
          out[at + 1] = c01; out[at + columns + 1] = c11; out[at + 2 * columns + 1] = c21; out[at + 3 * columns + 1] = c31;
        }
      }
    }
  }
}

// Values (inner, columns) in blocks of columns.
function columnBlocks(values, blocks, inner, columns) {
  for (let k = 0, from = 0; k < inner; k++) {
    for (let j = 0, to = COLUMNS * k; j < columns; j += COLUMNS, to += COLUMNS * inner) {
      blocks[to] = values[from++];
      if (j + 1 < columns) blocks[to + 1] = values[from++];
    }
  }
}

// Adds one number per channel.
function addBias(values, bias, plane) {
  for (let channel = 0, at = 0; channel < bias.length; channel++) {
    for (const end = at + plane; at < end; at++) values[at] += bias[channel];
  }
}

// Calls use(row of patches, their first place, place in the image, how many) for every run of pixels that a kernel
// placed at (x, y) * stride - padding sees; `image` is (channels, height, width), patches (channels * ky * kx, rows * columns).
function patches({ kernel: [kh, kw], stride: [sh, sw], padding: [ph, pw] }, [channels, height, width], [rows, columns], use) {
  for (let channel = 0, patch = 0; channel < channels; channel++) {
    for (let ky = 0; ky < kh; ky++) {
      for (let kx = 0; kx < kw; kx++, patch++) {
        const first = Math.max(0, Math.ceil((pw - kx) / sw)), last = Math.min(columns, Math.floor((width - 1 + pw - kx) / sw) + 1);
        for (let row = 0; row < rows; row++) {
          const y = row * sh - ph + ky;
          if (y < 0 || y >= height || last <= first) continue;
          use((patch * rows + row) * columns + first, (channel * height + y) * width + first * sw - pw + kx, last - first);
        }
      }
    }
  }
}

const UNARY = {
  relu: (x) => (x > 0 ? x : 0),
  leaky_relu: (x, { slope }) => (x > 0 ? x : slope * x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  tanh: Math.tanh,
  exp: Math.exp,
  sin: Math.sin,
  cos: Math.cos,
};

// Each maker gets a step, its constants, the lengths of its inputs and these, and returns [output, function of the inputs].
const MAKERS = {
  linear({ rows }, [weight, bias], [inner]) {
    const out = new Float64Array(rows);
    // One column: the product is as fast as memory, so weights stay in single precision.
    const turned = new Float32Array(inner * rows);
    for (let i = 0; i < rows; i++) for (let k = 0; k < inner; k++) turned[k * rows + i] = weight[i * inner + k];
    return [out, (values) => {
      bias ? out.set(bias) : out.fill(0);
      for (let k = 0; k < inner; k++) {
        const value = values[k], base = k * rows;
        if (value !== 0) for (let i = 0; i < rows; i++) out[i] += turned[base + i] * value;
      }
    }];
  },
  conv(step, [weight, bias]) {
    const { shape, out: [rows, oh, ow], kernel, stride } = step, plane = oh * ow, inner = shape[0] * kernel[0] * kernel[1];
    const weights = inBlocks(ROWS, rows, inner, (i, k) => weight[i * inner + k]);
    const seen = new Float64Array(inner * plane), blocks = new Float64Array(inner * upTo(COLUMNS, plane));
    const out = new Float64Array(upTo(ROWS, rows) * plane);
    return [out, (values) => {
      patches(step, shape, [oh, ow], (to, from, count) => {
        for (let i = 0; i < count; i++) seen[to + i] = values[from + i * stride[1]];
      });
      columnBlocks(seen, blocks, inner, plane);
      product(weights, 0, blocks, out, rows, inner, plane);
      if (bias) addBias(out, bias, plane);
    }];
  },
  conv_transpose(step, [weight, bias]) {
    const { shape: [inner, height, width], out: [channels, oh, ow], kernel, stride } = step, plane = height * width;
    const area = kernel[0] * kernel[1], rows = upTo(ROWS, area);
    const weights = inBlocks(ROWS, channels * rows, inner, (i, k) => {
      const place = i % rows;
      return place < area ? weight[(k * channels + (i - place) / rows) * area + place] : 0;
    });
    const blocks = new Float64Array(inner * upTo(COLUMNS, plane)), spread = new Float64Array(rows * plane);
    const out = new Float64Array(channels * oh * ow);
    return [out, (values) => {
      columnBlocks(values, blocks, inner, plane);
      out.fill(0);
      for (let channel = 0; channel < channels; channel++) {
        product(weights, channel * rows * inner, blocks, spread, rows, inner, plane);
        patches(step, [1, oh, ow], [height, width], (from, to, count) => {
          for (let i = 0, place = channel * oh * ow + to; i < count; i++, place += stride[1]) out[place] += spread[from + i];
        });
      }
      if (bias) addBias(out, bias, oh * ow);
    }];
  },
  affine({ plane }, [scale, shift], [length]) {
    const out = new Float64Array(length), period = scale.length;
    return [out, (values) => {
      for (let i = 0; i < length; i++) {
        const channel = Math.floor(i / plane) % period;
        out[i] = values[i] * scale[channel] + shift[channel];
      }
    }];
  },
  take(step, [indices]) {
    const out = new Float64Array(indices.length);
    return [out, (...inputs) => {
      const all = inputs.length === 1 ? inputs[0] : Float64Array.from(inputs.flatMap((each, i) => [...each.subarray(0, step.lengths[i])]));
      for (let i = 0; i < out.length; i++) out[i] = all[indices[i]];
    }];
  },
  reshape(step, constants, lengths, [values]) {
    return [values, () => {}];
  },
  resize({ shape: [channels, height, width], length }, [rows, columns]) {
    const out = new Float64Array(length);
    return [out, (values) => {
      for (let channel = 0, at = 0; channel < channels; channel++) {
        for (const row of rows) {
          const base = (channel * height + row) * width;
          for (let x = 0; x < columns.length; x++) out[at++] = values[base + columns[x]];
        }
      }
    }];
  },
  add(step, constants, [length]) {
    const out = new Float64Array(length);
    return [out, (a, b) => { for (let i = 0; i < length; i++) out[i] = a[i] + b[i]; }];
  },
  multiply(step, constants, [length]) {
    const out = new Float64Array(length);
    return [out, (a, b) => { for (let i = 0; i < length; i++) out[i] = a[i] * b[i]; }];
  },
  unary(step, constants, [length]) {
    const out = new Float64Array(length), apply = UNARY[step.name];
    return [out, (values) => { for (let i = 0; i < length; i++) out[i] = apply(values[i], step); }];
  },
};

// The program as a function from codes to one image: a Float64Array (channels, height, width) that the next call overwrites.
async function makeDecoder(program) {
  const constants = await unpackConstants(program.constants);
  const values = [new Float64Array(program.n_codes)], lengths = [program.n_codes];
  const calls = program.steps.map((step) => {
    const inputs = step.inputs.map((value) => values[value]);
    const [out, run] = MAKERS[step.op](step, step.constants.map((k) => constants[k]), step.inputs.map((value) => lengths[value]), inputs);
    values.push(out);
    lengths.push(step.length);
    return () => run(...inputs);
  });
  const image = values.at(-1).subarray(0, lengths.at(-1));
  return (codes) => {
    values[0].set(codes);
    for (const call of calls) call();
    return image;
  };
}
