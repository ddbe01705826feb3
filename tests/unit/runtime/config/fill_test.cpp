// Structs whose members are rows of keys.
#include "runtime/config/key_types.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

struct First {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#include "runtime/config/fill.def"
};
struct Second {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define TAKE take_words
#define SECOND
#include "runtime/config/fill.def"
};
struct Whole {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define BOTH
#include "runtime/config/fill.def"
  Int own = 9;
};

struct Clock {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define PART clock
#include "runtime/config/fill.def"
  Int count = 5;  // not the row of that name, which is of no part
};
struct Place {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define PART place
#include "runtime/config/fill.def"
};

template <class Struct>
concept HasPort = requires(Struct s) {
  s.port;
};

// A section of a configuration: its members stand in another order, and there are more.
struct Section {
  Text word = "b";
  struct {
    Float more = 1, share = 0.25;
  } inner;
  Int count = 8;
  Float wait_s = 0.25, pause_minutes = 0.5;
  Int port = 65535;
};

}  // namespace

TEST(Fill, RowsAreMembersWithTheirDefaults) {
  const First first;
  EXPECT_EQ(first.count, 3);
  EXPECT_EQ(first.inner.share, 0.5);
  EXPECT_EQ(Second().word, "a");
  const Whole whole;
  EXPECT_EQ(whole.count, 3);
  EXPECT_EQ(whole.inner.share, 0.5);
  EXPECT_EQ(whole.word, "a");
}

TEST(Fill, ASectionFillsTheMembersThatItNames) {
  First first;
  first.take(Section());
  EXPECT_EQ(first.count, 8);
  EXPECT_EQ(first.inner.share, 0.25);
  Second second;
  second.take_words(Section());
  EXPECT_EQ(second.word, "b");
  Whole whole;
  whole.take(Section());
  EXPECT_EQ(whole.count, 8);
  EXPECT_EQ(whole.inner.share, 0.25);
  EXPECT_EQ(whole.word, "b");
  EXPECT_EQ(whole.own, 9) << "what is no row stays";
}

TEST(Fill, APartHasItsRowsAlone) {
  EXPECT_TRUE(HasPort<Place>);
  EXPECT_FALSE(HasPort<Clock>) << "of another part";
  EXPECT_FALSE(HasPort<Whole>) << "of no part";
  Clock clock;
  EXPECT_EQ(clock.wait_s, std::chrono::minutes(1));
  EXPECT_EQ(clock.pause_minutes, std::chrono::seconds(120));
  clock.take(Section());
  EXPECT_EQ(clock.wait_s, std::chrono::milliseconds(250));
  EXPECT_EQ(clock.pause_minutes, std::chrono::seconds(30));
  EXPECT_EQ(clock.count, 5);
  Place place;
  EXPECT_EQ(place.port, 80);
  place.take(Section());
  EXPECT_EQ(place.port, 65535);
}

TEST(Fill, ADurationIsGivenInItsUnitOrAsADuration) {
  Seconds seconds = 0.1;
  EXPECT_EQ(seconds.count(), 100000000);
  seconds = std::chrono::hours(1);
  EXPECT_EQ(seconds, Minutes(60));
}

}  // namespace troupe::config
