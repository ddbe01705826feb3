// The loss of texts that is mixed into each step of reinforcement learning, and their order.
#include "tests/unit/runtime/learn/rl/rl_fixture.hpp"

namespace troupe::learn {

TEST_F(PolicyTrainerRl, MixesTheLossOfTextsIntoEachStep) {
  auto settings = settings_of();
  settings.batch.micro_tokens_max = 64;
  auto texts = std::make_shared<PtxTexts>();
  core::Rng rng(4);
  for (int i = 0; i < 7; ++i)
    texts->texts.push_back(random_tokens(rng, 20));
  texts->coef = 2;
  settings.ptx = texts;
  auto trainer = make(settings);
  auto groups = groups_of(*trainer, 0, 2);
  for (auto& group : groups) {
    for (auto& sample : group.samples)
      sample.score = 1;  // nothing to learn but the texts
  }
  // Three texts of 19 rows fill a micro-batch; their mean loss is what their log-probs say.
  const auto order = ptx_order(7, 0, 0);
  double nll = 0;
  for (std::uint64_t place = 0; place < 3; ++place) {
    const auto& text = texts->texts[order[place]];
    experience::Group as_group;
    as_group.prompt = {text[0]};
    as_group.samples.resize(1);
    as_group.samples[0].tokens.assign(text.begin() + 1, text.end());
    const auto logprobs = exact_logprobs(*trainer->packed(), as_group);
    for (const float l : logprobs[0])
      nll -= static_cast<double>(l) / (3 * 19);
  }
  const auto first = run(*trainer, groups);
  EXPECT_NEAR(first.at("policy/ptx_loss"), nll, 1e-6);
  EXPECT_NEAR(first.at("policy/loss"), 2 * nll, 1e-6);
  EXPECT_GT(first.at("policy/grad_norm"), 0.0);
  // The cursor goes on after a restart.
  ASSERT_TRUE(trainer->save_state(folder_).has_value());
  auto resumed = make(settings, 3);
  ASSERT_TRUE(resumed->load_state(folder_).has_value());
  const auto next = groups_of(*trainer, 1, 2);
  EXPECT_EQ(run(*trainer, next), run(*resumed, next));
  EXPECT_EQ(difference(*trainer, *resumed), 0.0);
  // Enough passes over them lower their loss.
  Table last;
  for (std::uint64_t update = 2; update < 30; ++update)
    last = run(*trainer, groups_of(*trainer, update, 2));
  EXPECT_LT(last.at("policy/ptx_loss"), 0.7 * nll);
}

TEST(PtxOrder, IsAPermutationOfItsOwnInEveryPass) {
  auto first = ptx_order(9, 5, 0), second = ptx_order(9, 5, 1);
  EXPECT_EQ(first, ptx_order(9, 5, 0));
  EXPECT_NE(first, second);
  EXPECT_NE(first, ptx_order(9, 6, 0));
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.front(), 0u);
  EXPECT_EQ(first.back(), 8u);
}

}  // namespace troupe::learn
