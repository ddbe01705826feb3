// Computes the cosine and sine tables of rotary position embedding (RoPE). Frequencies and angles
// are rounded to f32 where transformers rounds them, because models were trained on those angles.
// `sine_cosine` below then computes cosine and sine of the f32 angle in double. It gives the same
// bits on every machine, which the C library does not. Runs on the caller's thread.
#include "runtime/model/spec.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace troupe::model {
namespace {

struct SineCosine {
  double sine, cosine;
};

// For 0 <= x < 2^22. Subtracts a multiple k of pi/2, which is split into three parts: the first two
// have 31 and 32 bits, so that k * part is exact for k < 2^21 and nearly so above. Then evaluates
// Taylor polynomials on [-pi/4, pi/4]; error below 2e-16.
SineCosine sine_cosine(double x) {
  constexpr double kPart1 = 0x1.921fb544p+0;
  constexpr double kPart2 = 0x1.0b4611a6p-34;
  constexpr double kPart3 = 0x1.3198a2e037073p-69;
  const double k = std::floor(x * (2.0 / std::numbers::pi) + 0.5);
  const double r = ((x - k * kPart1) - k * kPart2) - k * kPart3;
  const double z = r * r;
  double sine = 0, cosine = 0;
  for (int n = 17; n >= 3; n -= 2) {
    sine = (1.0 + sine) * (-z / static_cast<double>(n * (n - 1)));
  }
  sine = r + r * sine;
  for (int n = 18; n >= 2; n -= 2) {
    cosine = (1.0 + cosine) * (-z / static_cast<double>(n * (n - 1)));
  }
  cosine = 1.0 + cosine;
  switch (static_cast<std::int64_t>(k) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

// Llama 3: divides the frequencies of long waves by `factor`, keeps those of short waves, and
// interpolates between the two.
float scale_llama3(float frequency, const RopeSpec& rope) {
  const auto context = static_cast<float>(rope.original_context);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  const auto factor = static_cast<float>(rope.factor);
  const float wave = static_cast<float>(2.0 * std::numbers::pi) / frequency;
  if (wave > context / low) return frequency / factor;
  if (wave < context / high) return frequency;
  const float smooth = (context / wave - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeSpec& rope, std::int64_t rotary) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < rotary; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(rotary);
    const float power = static_cast<float>(std::pow(rope.theta, static_cast<double>(exponent)));
    const float frequency = 1.0f / power;
    switch (rope.kind) {
      case RopeSpec::Kind::kDefault:
        frequencies.push_back(frequency);
        break;
      case RopeSpec::Kind::kLinear:
        frequencies.push_back(frequency / static_cast<float>(rope.factor));
        break;
      case RopeSpec::Kind::kLlama3:
        frequencies.push_back(scale_llama3(frequency, rope));
        break;
      case RopeSpec::Kind::kLongRope: {
        const std::vector<double>& factors = rope.extended ? rope.long_factors : rope.short_factors;
        const auto factor = static_cast<float>(factors[static_cast<std::size_t>(i / 2)]);
        frequencies.push_back(1.0f / (factor * power));
        break;
      }
    }
  }
  return frequencies;
}

void rope_tables(
    const RopeSpec& rope, std::int64_t rotary, std::int64_t positions, float* cos, float* sin) {
  const std::vector<float> frequencies = rope_frequencies(rope, rotary);
  const auto scale = static_cast<float>(rope.attention_factor);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      const SineCosine value = sine_cosine(static_cast<double>(angle));
      *cos++ = static_cast<float>(value.cosine) * scale;
      *sin++ = static_cast<float>(value.sine) * scale;
    }
  }
}

}  // namespace troupe::model
