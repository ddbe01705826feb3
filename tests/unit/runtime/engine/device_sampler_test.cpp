// A device's draws against the host's Sampler, bit for bit: token, log-prob and kept mass over
// random rows and parameters, and what is reported beside them. Rows of logits stand for a head.
#include "runtime/engine/device_sampler.hpp"

#include "runtime/engine/group.hpp"
#include "tests/unit/runtime/engine/logits.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace troupe::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SamplerOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    kernels::flush_denormals();
    std::string why;
    team_ = model::make_emulated_team(why);
    if (!team_) GTEST_SKIP() << why;
  }

  std::unique_ptr<core::TeamRunner> team_;
};

// One head row with what its draws are to be; all samples of `group` draw from it.
struct DeviceRow {
  Logits logits;
  Group group;
  std::vector<TokenCount> response;
  std::int32_t target = -1;

  DrawHistory history() const {
    return {.masked = group.end_tokens, .prompt = group.prompt_tokens, .response = response};
  }
};

// Any parameters, and any history for them.
DeviceRow random_row(std::uint64_t seed, std::int64_t vocab) {
  core::Rng rng(seed, 21);
  const auto one_of = [&](std::uint64_t n) { return rng.next_below(n) == 0; };
  const auto between = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * rng.next_uniform());
  };
  DeviceRow row;
  row.logits = Logits::random(vocab, seed, between(0.1, 5.0));
  for (float& z : row.logits.values()) {
    if (seed % 3 == 0) z = std::round(z * 2.0f) / 2.0f;
    if (seed % 7 == 0 && one_of(4)) z = -kInfinity;
    if (seed % 11 == 0) z = 1.5f;
  }
  row.logits.values()[rng.next_below(static_cast<std::uint64_t>(vocab))] = 0.0f;
  SamplingParams& params = row.group.request.sampling;
  params.temperature = one_of(6) ? 0.0f : one_of(2) ? 1.0f : between(0.2, 2.0);
  const auto size = static_cast<std::uint64_t>(vocab);
  if (one_of(2)) params.top_k = static_cast<std::int32_t>(1 + rng.next_below(one_of(2) ? 3 : size));
  if (one_of(2)) params.top_p = one_of(4) ? between(1e-7, 1e-3) : between(0.1, 1.0);
  if (one_of(3)) params.min_p = between(0.0, 0.4);
  if (one_of(3)) params.repetition_penalty = between(0.5, 2.0);
  if (one_of(3)) params.presence_penalty = between(-2.0, 2.0);
  if (one_of(3)) params.frequency_penalty = between(-2.0, 2.0);
  params.entropies = one_of(3);
  params.raw_logprobs = one_of(3);
  if (one_of(3)) params.top_logprobs = static_cast<std::int32_t>(1 + rng.next_below(20));
  for (std::int32_t token = 0; token < vocab; ++token) {
    if (one_of(400)) params.logit_bias.push_back({token, between(-5.0, 5.0)});
    if (one_of(60)) row.group.prompt_tokens.push_back(token);
    if (one_of(60)) row.response.push_back({token, static_cast<std::int32_t>(1 + token % 3)});
    if (seed % 4 == 0 && one_of(90)) row.group.end_tokens.push_back(token);
  }
  if (seed % 13 == 0) row.target = static_cast<std::int32_t>(rng.next_below(size));
  if (row.target >= 0) params.temperature = 1.0f;
  return row;
}

// Rows of equal vocabulary as a head leaves them on the device.
struct DeviceHead {
  DeviceHead(const std::vector<DeviceRow>& from, core::TeamRunner& team)
      : vocab(from[0].logits.vocab()),
        blocks((vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock),
        logits(std::ssize(from) * vocab, team.memory()),
        inv(std::ssize(from), team.memory()),
        max(std::ssize(from) * blocks, team.memory()),
        sum(std::ssize(from) * blocks, team.memory()) {
    std::vector<float> all, scales;
    for (const DeviceRow& row : from) {
      all.insert(all.end(), row.logits.values().begin(), row.logits.values().end());
      scales.push_back(inv_temperature(row.group.request.sampling));
    }
    logits.upload(all);
    inv.upload(scales);
    team.run([&](core::Team) {
      kernels::ops().vocab_sums(rows(0), {0, std::ssize(from)}, {0, blocks});
    });
  }
  kernels::VocabRows rows(std::int64_t first) {
    return {.logits = logits.data() + first * vocab,
            .ld = vocab,
            .vocab = vocab,
            .inv_temperature = inv.data() + first,
            .block_max = max.data() + first * blocks,
            .block_sum = sum.data() + first * blocks};
  }
  std::vector<float> read() const {
    std::vector<float> all(static_cast<std::size_t>(logits.size()));
    logits.download(all);
    return all;
  }
  std::int64_t vocab, blocks;
  core::Buffer<float> logits, inv, max, sum;
};

bool same(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

// Draws each row's token on both sides, in batches of `batch_rows`. Every third row has three
// samples.
void compare(core::TeamRunner& team, std::vector<DeviceRow>& rows, std::int64_t batch_rows) {
  const std::int64_t vocab = rows[0].logits.vocab(), count = std::ssize(rows);
  DeviceHead head(rows, team);
  const std::vector<float> before = head.read();
  DeviceSampler there(vocab, batch_rows, team);
  Sampler here(vocab);
  std::vector<DrawJob> jobs;
  std::vector<double> uniforms;
  std::vector<std::size_t> top_begin{0};
  for (std::int32_t r = 0; r < count; ++r) {
    DeviceRow& row = rows[static_cast<std::size_t>(r)];
    const std::int32_t samples = row.target < 0 && r % 3 == 0 ? 3 : 1;
    for (std::int32_t s = 0; s < samples; ++s) {
      uniforms.push_back(
          core::uniform(9, static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(s)));
      jobs.push_back({&row.group, s, r, row.target, 0});
      top_begin.push_back(top_begin.back() +
                          static_cast<std::size_t>(row.group.request.sampling.top_logprobs));
    }
  }
  there.begin(count);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    there.add(i, jobs[i], uniforms[i], rows[static_cast<std::size_t>(jobs[i].logit_row)].history());
  there.place();
  for (std::int64_t first = 0; first < count; first += batch_rows)
    there.batch(head.rows(first), first);
  std::vector<Draw> draws(jobs.size());
  std::vector<TokenLogprob> top(top_begin.back());
  there.read(draws, top, top_begin);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const DeviceRow& row = rows[static_cast<std::size_t>(jobs[i].logit_row)];
    const SamplingParams& params = row.group.request.sampling;
    std::vector<TokenLogprob> best(static_cast<std::size_t>(params.top_logprobs));
    const HeadRow host = row.logits.head(inv_temperature(params));
    const Draw expected = row.target >= 0
                              ? here.score(host, row.target, best)
                              : here.draw(host, params, uniforms[i], row.history(), best);
    const Draw& draw = draws[i];
    const std::string who = "row " + std::to_string(jobs[i].logit_row);
    ASSERT_EQ(draw.token, expected.token) << who;
    ASSERT_TRUE(same(draw.logprob, expected.logprob)) << who;
    ASSERT_TRUE(same(draw.raw_logprob, expected.raw_logprob)) << who;
    ASSERT_TRUE(same(draw.entropy, expected.entropy)) << who;
    ASSERT_EQ(draw.top.size(), expected.top.size()) << who;
    for (std::size_t t = 0; t < draw.top.size(); ++t) {
      ASSERT_EQ(draw.top[t].token, expected.top[t].token) << who << ", place " << t;
      ASSERT_TRUE(same(draw.top[t].logprob, expected.top[t].logprob)) << who << ", place " << t;
    }
  }
  EXPECT_EQ(std::memcmp(before.data(), head.read().data(), before.size() * sizeof(float)), 0)
      << "logits were not put back";
}

TEST_F(SamplerOnDevice, DrawsAndReportsWhatTheHostDoes) {
  std::uint64_t seed = 1;
  for (const std::int64_t vocab : {1037, 512, 31, 2600}) {
    std::vector<DeviceRow> rows;
    for (int i = 0; i < 22; ++i)
      rows.push_back(random_row(seed++, vocab));
    for (DeviceRow& row : rows)
      if (vocab < 100) row.group.end_tokens.clear();
    SCOPED_TRACE(vocab);
    compare(*team_, rows, 8);
  }
}

// The sampler is used step after step; only the lists of the last step count.
TEST_F(SamplerOnDevice, AStepWithoutSuchJobsDoesNothing) {
  DeviceSampler there(600, 4, *team_);
  std::vector<DeviceRow> rows{random_row(1, 600)};
  DeviceHead head(rows, *team_);
  const DrawJob job{&rows[0].group, 0, 0, -1, 0};
  there.begin(1);
  there.add(0, job, 0.5, rows[0].history());
  there.begin(1);
  there.place();
  there.batch(head.rows(0), 0);
  std::vector<Draw> draws(1);
  draws[0].token = -5;
  std::vector<TokenLogprob> top(64);
  const std::vector<std::size_t> top_begin{0, 64};
  there.read(draws, top, top_begin);
  EXPECT_EQ(draws[0].token, -5);
}

// The mass of the kept tokens, which the host's KeptSet has too.
TEST_F(SamplerOnDevice, KeptMassIsTheHosts) {
  constexpr std::int64_t kVocab = 2100;
  std::vector<DeviceRow> rows;
  for (std::uint64_t seed = 1; rows.size() < 12; ++seed) {
    DeviceRow row = random_row(seed, kVocab);
    SamplingParams& params = row.group.request.sampling;
    if (params.top_k >= kVocab) params.top_k = 0;
    if (params.temperature > 0.0f && KeptSet::truncates(params, kVocab))
      rows.push_back(std::move(row));
  }
  DeviceHead head(rows, *team_);
  core::Memory& memory = team_->memory();
  const std::int64_t count = std::ssize(rows);
  core::Buffer<double> uniform(count, memory);
  core::Buffer<std::int32_t> at(count, memory), token(count, memory);
  core::Buffer<kernels::Truncation> truncation(count, memory);
  core::Buffer<unsigned long long> mass(count, memory);
  std::vector<std::int32_t> numbers;
  std::vector<kernels::Truncation> cuts;
  for (const DeviceRow& row : rows) {
    const SamplingParams& params = row.group.request.sampling;
    numbers.push_back(static_cast<std::int32_t>(numbers.size()));
    cuts.push_back({params.top_k, params.top_p, params.min_p});
  }
  uniform.upload(std::vector<double>(rows.size(), 0.4));
  at.upload(numbers);
  truncation.upload(cuts);
  team_->run([&](core::Team) {
    kernels::ops().draw_kept({.rows = head.rows(0),
                              .uniform = uniform.data(),
                              .row = at.data(),
                              .truncation = truncation.data(),
                              .token = token.data(),
                              .mass = mass.data()},
                             count);
  });
  std::vector<unsigned long long> masses(rows.size());
  mass.download(masses);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SamplingParams& params = rows[i].group.request.sampling;
    VocabRow row(kVocab, kernels::ops());
    row.load(rows[i].logits.head(inv_temperature(params)), {});
    KeptSet kept(kVocab);
    kept.find(row, params);
    EXPECT_EQ(masses[i], kept.mass()) << i;
  }
}

}  // namespace
}  // namespace troupe::engine
