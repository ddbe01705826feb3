// Causes of failed groups in one line.
#include "actors/controller/failed_group.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {

TEST(FailedGroup, TheGistOfATracebackIsItsLastLine) {
  EXPECT_EQ(gist_of("reward r: reward.py raised: Traceback (most recent call last):\n"
                    "  File \"reward.py\", line 2, in f\n    raise ValueError('no')\n"
                    "ValueError: no\n"),
            "reward r: reward.py raised: ValueError: no");
  EXPECT_EQ(gist_of("Traceback (most recent call last):"), "Traceback (most recent call last):");
}

TEST(FailedGroup, OtherCausesAreTheirOwnGist) {
  for (const char* cause : {"", "no score", "two\nlines\n"})
    EXPECT_EQ(gist_of(cause), cause);
}

}  // namespace troupe::actors
