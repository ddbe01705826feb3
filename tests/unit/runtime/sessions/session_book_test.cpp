// Who gives way when there is no room for another session.
#include "runtime/sessions/session_book.hpp"

#include <gtest/gtest.h>

namespace troupe::sessions {
namespace {

using Owner = std::optional<std::size_t>;

class Nobody final : public dialects::Sampler {
 public:
  core::GroupId next_id() override { return {1}; }
  void submit(engine::GroupRequest, bool, async::Executor, Listener) override {}
  void abort(core::GroupId) override {}
  core::Version version() const override { return 0; }
};

void call(Session& session, std::size_t tokens) {
  const std::vector<std::int32_t> prompt = {1};
  const auto request = session.begin(prompt);
  CallPrompt at;
  at.tokens = prompt;
  at.place = session.place(prompt);
  Call made;
  made.drawn.tokens.assign(tokens - 1, 2);
  made.drawn.behaviour.assign(tokens - 1, -1.0f);
  made.drawn.versions = experience::VersionRuns::all(1, tokens - 1);
  session.add(*request, at, std::move(made));
}

class Books : public ::testing::Test {
 protected:
  std::string open(Owner owner) {
    const auto opened = book_.open(owner, false);
    return opened ? opened->session->id() : std::string();
  }
  bool has(const std::string& id) { return book_.find(id).has_value(); }

  Nobody sampler_;
  async::SteadyTimers timers_;
  SessionBook book_{sampler_, timers_, {.sessions_max = 4, .tokens_max = 100}};
};

TEST_F(Books, TheOwnerWithMostGivesWay) {
  std::vector<std::string> hogs;
  for (int i = 0; i < 4; ++i)
    hogs.push_back(open(1));
  EXPECT_EQ(open(1), "") << "nobody else has any";
  call(*book_.find(hogs[3])->session, 2);
  const std::string other = open(2);
  EXPECT_NE(other, "");
  EXPECT_FALSE(has(hogs[2])) << "the youngest that was never called";
  EXPECT_TRUE(has(hogs[3]));
  EXPECT_NE(open(2), "") << "two each";
  EXPECT_FALSE(has(hogs[1]));
  EXPECT_EQ(open(2), "") << "it has as many";
  EXPECT_NE(open(3), "");
  EXPECT_EQ(book_.size(), 4u);
}

TEST_F(Books, OfCalledOnesTheOneUsedLongestAgo) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(open(1));
    call(*book_.find(ids.back())->session, 2);
  }
  book_.used(ids[0]);
  EXPECT_NE(open(2), "");
  EXPECT_TRUE(has(ids[0]));
  EXPECT_FALSE(has(ids[1]));
}

TEST_F(Books, AnEndedOneGoesFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i)
    ids.push_back(open({}));
  EXPECT_EQ(open({}), "") << "without keys all are one owner's";
  book_.find(ids[2])->session->end();
  EXPECT_NE(open({}), "");
  EXPECT_FALSE(has(ids[2]));
}

TEST_F(Books, TheOwnerWithMostTokensLosesItsOldest) {
  const std::string big = open(1), later = open(1), small = open(2);
  call(*book_.find(big)->session, 60);
  call(*book_.find(later)->session, 30);
  call(*book_.find(small)->session, 20);
  book_.used(big);
  book_.used(later);
  for (int i = 0; i < 64; ++i)
    book_.used(small);
  EXPECT_FALSE(has(big));
  EXPECT_TRUE(has(later));
  EXPECT_TRUE(has(small));
}

TEST(SessionKeys, AnIdIsNoKey) {
  const SessionLock lock;
  const std::string key = lock.key("abc");
  EXPECT_EQ(session_words(key).id, "abc");
  EXPECT_TRUE(lock.opens(session_words(key).secret));
  EXPECT_FALSE(lock.opens(session_words("abc").secret));
  EXPECT_FALSE(lock.opens(""));
  EXPECT_FALSE(lock.opens(SessionLock().secret));
  EXPECT_EQ(lock.secret.size(), 2 * kSessionSecret_bytes);
}

}  // namespace
}  // namespace troupe::sessions
