// The generator's groups: their order, what a cut leaves of them, who hears of their end.
#include "actors/generator/group_book.hpp"

#include "actors/data/data_role.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::generator {
namespace {

constexpr std::uint64_t kEvaluation = experience::kFirstEvaluation;

struct Asked {
  GroupBook book;
  std::shared_ptr<GenerateCall> call = std::make_shared<GenerateCall>();

  void ask(std::vector<experience::Ticket> tickets, core::Version version_min = 0) {
    for (const auto& ticket : tickets)
      book.ask(ticket, {}, version_min, call);
  }
  void give_prompts(std::int32_t samples = 3) {
    for (const auto& ticket : book.take_asked(100)) {
      PromptTask task;
      task.ticket = ticket;
      task.tokens = {1, 2};
      task.samples = samples;
      book.put_prompt(std::move(task));
    }
  }
};

engine::Sample sample_of(core::GroupId id, std::int32_t index) {
  engine::Sample sample;
  sample.group = id;
  sample.index = index;
  sample.tokens = {100 + index};
  return sample;
}

}  // namespace

TEST(GroupBook, TakesEvaluationsFirstThenTicketOrder) {
  Asked asked;
  asked.ask({{1, 0, 0}, {0, 1, 0}, {kEvaluation, 4, 0}, {0, 0, 0}});
  const std::vector<experience::Ticket> wanted = {{kEvaluation, 4, 0}, {0, 0, 0}, {0, 1, 0}};
  EXPECT_EQ(asked.book.take_asked(3), wanted);
  EXPECT_EQ(asked.book.take_asked(3), (std::vector<experience::Ticket>{{1, 0, 0}}));
}

TEST(GroupBook, SubmitsOnlyWhatTheWeightsAreNewEnoughFor) {
  Asked asked;
  asked.ask({{0, 0, 0}}, 1);
  asked.ask({{0, 1, 0}}, 3);
  EXPECT_TRUE(asked.book.submit(9).empty()) << "no prompt yet";
  asked.give_prompts();
  EXPECT_EQ(asked.book.submit(2).size(), 1u);
  EXPECT_EQ(asked.book.held(), 1u);
  EXPECT_EQ(asked.book.submit(3).size(), 1u);
  EXPECT_TRUE(asked.book.submit(3).empty()) << "each group runs once";
}

TEST(GroupBook, AGroupIsWholeWithItsLastSampleInOrderOfIndex) {
  Asked asked;
  asked.ask({{0, 0, 0}});
  asked.give_prompts();
  const core::GroupId id = asked.book.submit(0).at(0).id;
  EXPECT_FALSE(asked.book.put_sample(sample_of(id, 2)));
  EXPECT_FALSE(asked.book.put_sample(sample_of(id, 0)));
  const auto whole = asked.book.put_sample(sample_of(id, 1));
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->cut);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(whole->samples[static_cast<std::size_t>(i)].tokens.front(), 100 + i);
  EXPECT_FALSE(asked.call->done->settled());
  asked.book.end({0, 0, 0}, &*whole, std::nullopt);
  EXPECT_TRUE(asked.call->done->settled());
  EXPECT_EQ(asked.call->totals.samples, 3u);
  EXPECT_EQ(asked.call->totals.prompt_tokens, 2u);
}

TEST(GroupBook, ACutGroupNeedsTwoSamples) {
  for (std::int32_t done = 0; done <= 2; ++done) {
    Asked asked;
    asked.ask({{0, 0, 0}});
    asked.give_prompts();
    const core::GroupId id = asked.book.submit(0).at(0).id;
    EXPECT_EQ(asked.book.cut({{0, 0, 0}}), std::vector<core::GroupId>{id});
    for (std::int32_t i = 0; i < done; ++i) {
      EXPECT_FALSE(asked.book.put_sample(sample_of(id, i)));  // ended while the cut was on its way
    }
    const auto left = asked.book.aborted(id);
    EXPECT_EQ(left.has_value(), done == 2);
    EXPECT_EQ(asked.call->done->settled(), done < 2);
    if (left) {
      EXPECT_TRUE(left->cut);
    } else {
      EXPECT_EQ(asked.call->error->code, core::ErrorCode::kDeadline);
    }
  }
}

TEST(GroupBook, AGroupThatEndsBeforeItsCutIsWhole) {
  Asked asked;
  asked.ask({{0, 0, 0}});
  asked.give_prompts(1);
  const core::GroupId id = asked.book.submit(0).at(0).id;
  EXPECT_EQ(asked.book.cut({{0, 0, 0}}).size(), 1u);
  EXPECT_TRUE(asked.book.put_sample(sample_of(id, 0)));
  EXPECT_FALSE(asked.book.aborted(id));
  EXPECT_FALSE(asked.call->done->settled());
}

TEST(GroupBook, CutsWhatHasNotBegunAtOnce) {
  Asked asked;
  asked.ask({{0, 0, 0}, {0, 1, 0}}, 5);
  EXPECT_TRUE(asked.book.cut({{0, 0, 0}}).empty());
  asked.give_prompts();
  EXPECT_TRUE(asked.book.cut({{0, 1, 0}, {3, 3, 3}}).empty());
  EXPECT_TRUE(asked.call->done->settled());
  EXPECT_EQ(asked.book.size(), 0u);
  EXPECT_TRUE(asked.book.submit(5).empty());
}

TEST(GroupBook, AllWhoAskedHearOfTheEnd) {
  Asked asked;
  asked.ask({{0, 0, 0}});
  const auto first = std::exchange(asked.call, std::make_shared<GenerateCall>());
  asked.ask({{0, 0, 0}, {0, 1, 0}});
  asked.book.end({0, 0, 0}, nullptr, core::Error{core::ErrorCode::kData, "bad"});
  EXPECT_TRUE(first->done->settled());
  EXPECT_EQ(first->error->message, "bad");
  EXPECT_FALSE(asked.call->done->settled());
  asked.book.end({0, 1, 0}, nullptr, std::nullopt);
  EXPECT_TRUE(asked.call->done->settled());
  EXPECT_EQ(asked.call->error->message, "bad");
  EXPECT_EQ(asked.book.size(), 0u);
}

}  // namespace troupe::actors::generator
