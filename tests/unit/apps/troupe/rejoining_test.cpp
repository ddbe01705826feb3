// What a command that stays with a run does when its place there is over.
#include "apps/troupe/rejoining.hpp"

#include <gtest/gtest.h>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;

Rejoining::Terms guest_of(double wait_s) {
  Rejoining::Terms terms;
  terms.who = "reward x";
  terms.join.join = "127.0.0.1:1";
  terms.wait_s = wait_s;
  terms.interrupted = "interrupted";
  terms.dismissed = "needed no more";
  return terms;
}

session::NodeGuest in_run(std::uint64_t id, const std::string& folder) {
  session::NodeGuest guest;
  guest.run_id = id;
  guest.run_folder = folder;
  return guest;
}

Result<session::NodeEnd> failed(ErrorCode code) {
  return fail(code, "why");
}

TEST(Rejoining, AGuestBelongsToTheFirstRunThatItJoins) {
  Rejoining rejoining(guest_of(0));
  session::JoinTarget target;
  EXPECT_EQ(rejoining.bound({}, target).run_id, 0u) << "it has joined none";
  target.run_id = 5;
  target.run = "runs/five";
  EXPECT_EQ(rejoining.bound({}, target).run_id, 5u) << "a folder names its run";
  EXPECT_EQ(rejoining.bound({}, target).run, "runs/five");
  rejoining.joined(in_run(7, "runs/seven"));
  rejoining.joined(in_run(8, "runs/eight"));
  EXPECT_EQ(rejoining.bound({}, target).run_id, 7u);
  EXPECT_EQ(rejoining.bound({}, target).run, "runs/seven");
  Rejoining::Terms any = guest_of(0);
  any.one_run = false;
  Rejoining follower(any);
  follower.joined(in_run(7, "runs/seven"));
  EXPECT_EQ(follower.bound({}, target).run_id, 0u);
}

TEST(Rejoining, AnEndThatWasAskedForIsTheEnd) {
  Rejoining rejoining(guest_of(0));
  const auto stopped = rejoining.next(session::NodeEnd::kStopped);
  ASSERT_TRUE(stopped && !*stopped);
  EXPECT_EQ(stopped->error().code, ErrorCode::kInterrupted);
  const auto dismissed = rejoining.next(session::NodeEnd::kDismissed);
  ASSERT_TRUE(dismissed);
  EXPECT_TRUE(*dismissed);
}

TEST(Rejoining, AnAnswerThatNothingChangesIsNotAskedForAgain) {
  Rejoining rejoining(guest_of(0));
  rejoining.joined(in_run(7, "runs/seven"));
  rejoining.settled();
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kConfig, ErrorCode::kUnsupported}) {
    const auto over = rejoining.next(failed(code));
    ASSERT_TRUE(over && !*over) << core::error_name(code);
    EXPECT_EQ(core::exit_status(over->error().code), 2) << core::error_name(code);
  }
  EXPECT_FALSE(rejoining.next(failed(ErrorCode::kPeerLost))) << "it tries again";
  EXPECT_FALSE(rejoining.next(session::NodeEnd::kLost)) << "it tries again";
}

// Until the run has taken what it brings, each failure is told.
TEST(Rejoining, WhatWasNeverTakenEndsWithTheFirstError) {
  Rejoining rejoining(guest_of(0));
  rejoining.joined(in_run(7, "runs/seven"));
  const auto over = rejoining.next(failed(ErrorCode::kPeerLost));
  ASSERT_TRUE(over && !*over);
  EXPECT_EQ(over->error().message, "why");
}

TEST(Rejoining, AWaitEndsAndBeginsAnewWhenTheRunWasThere) {
  Rejoining rejoining(guest_of(1e-9));
  EXPECT_EQ(rejoining.patience(), ", for at most 1e-09 s (--wait-s)");
  rejoining.joined(in_run(7, "runs/seven"));
  rejoining.settled();
  rejoining.may_wait();
  EXPECT_FALSE(rejoining.may_wait());
  const auto over = rejoining.next(session::NodeEnd::kLost);
  ASSERT_TRUE(over && !*over);
  EXPECT_EQ(over->error().code, ErrorCode::kPeerLost);
  EXPECT_NE(over->error().message.find("so reward x ends"), std::string::npos);
  Rejoining patient(guest_of(0));
  EXPECT_EQ(patient.patience(), "");
  patient.may_wait();
  EXPECT_TRUE(patient.may_wait()) << "0: for ever";
}

}  // namespace
}  // namespace troupe::app
