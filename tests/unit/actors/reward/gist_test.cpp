// Causes in one line.
#include "actors/reward/gist.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {

TEST(Gist, OfATracebackIsItsLastLine) {
  EXPECT_EQ(gist_of("reward r: reward.py raised: Traceback (most recent call last):\n"
                    "  File \"reward.py\", line 2, in f\n    raise ValueError('no')\n"
                    "ValueError: no\n"),
            "reward r: reward.py raised: ValueError: no");
  EXPECT_EQ(gist_of("Traceback (most recent call last):"), "Traceback (most recent call last):");
}

TEST(Gist, OtherCausesAreTheirOwnGist) {
  for (const char* cause : {"", "no score", "two\nlines\n"})
    EXPECT_EQ(gist_of(cause), cause);
}

}  // namespace troupe::actors
