// The divergence from a teacher on values worked out by hand, and its gradient against finite
// differences. Conventions: natural logarithms; beta 0 is KL(teacher || model), beta 1 KL(model ||
// teacher); no factor of the squared temperature.
#include "runtime/model/divergence.hpp"

#include "kernels/scalar.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

using Floats = std::vector<float>;

RowSums sums_of(const Floats& z, const Floats& t, float temperature) {
  const auto lse = [&](const Floats& logits) {
    double sum = 0;
    for (const float logit : logits)
      sum += std::exp(static_cast<double>(logit) / temperature);
    return static_cast<float>(std::log(sum));
  };
  return {lse(z), lse(t)};
}

DivergenceRow measured(const Floats& z, const Floats& t, float beta, float temperature = 1) {
  return divergence_of(z, t, sums_of(z, t, temperature),
                       {.beta = beta, .temperature = temperature});
}

// p = (1/4, 3/4), q = (1/2, 1/2).
const Floats kModel = {0, std::log(3.0f)}, kTeacher = {0.5f, 0.5f};

TEST(Divergence, HasTheValuesOfTwoTokens) {
  const double ln = std::log(4.0 / 3);
  EXPECT_NEAR(measured(kModel, kTeacher, 0).divergence, 0.5 * ln, 1e-6)
      << "1/2 ln(2) + 1/2 ln(2/3)";
  EXPECT_NEAR(measured(kModel, kTeacher, 1).divergence, 0.25 * std::log(0.5) + 0.75 * std::log(1.5),
              1e-6);
  // m = 1/4 q + 3/4 p = (5/16, 11/16).
  const double from_teacher = 0.5 * std::log(8.0 / 5) + 0.5 * std::log(8.0 / 11);
  const double from_model = 0.25 * std::log(4.0 / 5) + 0.75 * std::log(12.0 / 11);
  EXPECT_NEAR(measured(kModel, kTeacher, 0.25f).divergence, 0.25 * from_teacher + 0.75 * from_model,
              1e-6);
  // At temperature 2 the model's odds are the square root of 3.
  const double p = 1 / (1 + std::sqrt(3.0));
  EXPECT_NEAR(measured(kModel, kTeacher, 0, 2).divergence,
              0.5 * std::log(0.5 / p) + 0.5 * std::log(0.5 / (1 - p)), 1e-6);
}

TEST(Divergence, IsNoneBetweenEqualsAndFiniteFarApart) {
  const Floats far = {80, -80, 0}, other = {-80, 80, 0};
  for (const float beta : {0.0f, 0.3f, 1.0f}) {
    EXPECT_EQ(measured(far, far, beta).divergence, 0) << beta;
    EXPECT_TRUE(measured(far, far, beta).agrees);
    const DivergenceRow row = measured(far, other, beta);
    EXPECT_TRUE(std::isfinite(row.divergence)) << beta;
    EXPECT_FALSE(row.agrees);
    Floats t = other;
    divergence_gradient(far, t, sums_of(far, other, 1), row.mean, 1, {.beta = beta});
    for (const float slope : t)
      EXPECT_TRUE(std::isfinite(slope)) << beta;
  }
  EXPECT_NEAR(measured(far, other, 0).divergence, 160, 1e-3);
  EXPECT_NEAR(measured(far, other, 0.5f).divergence, std::log(2.0), 1e-5) << "its bound";
}

TEST(Divergence, OfEqualLogitsTheFirstIsTheGreatest) {
  EXPECT_TRUE(measured({1, 1}, {2, 0}, 0).agrees);
  EXPECT_FALSE(measured({1, 1}, {0, 2}, 0).agrees);
}

// Rows longer than a piece of the loop, at which nothing may change.
TEST(Divergence, GradientIsThatOfFiniteDifferences) {
  constexpr std::size_t kCount = 300;
  Floats z(kCount), t(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    z[i] = 2.0f * std::sin(1.3f * static_cast<float>(i));
    t[i] = 2.0f * std::cos(0.7f * static_cast<float>(i));
  }
  for (const float beta : {0.0f, 0.4f, 1.0f}) {
    for (const float temperature : {1.0f, 1.7f}) {
      const TeacherRows teacher{.beta = beta, .temperature = temperature};
      const RowSums lse = sums_of(z, t, temperature);
      Floats slope = t;
      divergence_gradient(z, slope, lse, divergence_of(z, t, lse, teacher).mean, 3, teacher);
      for (const std::size_t i : {0u, 17u, 255u, 256u, 299u}) {
        constexpr float kStep = 0.02f;
        Floats above = z, below = z;
        above[i] += kStep;
        below[i] -= kStep;
        const double rise = measured(above, t, beta, temperature).divergence -
                            measured(below, t, beta, temperature).divergence;
        const auto run = static_cast<double>(above[i] - below[i]);
        EXPECT_NEAR(slope[i], 3 * rise / run, 2e-4) << beta << " " << temperature << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::model
