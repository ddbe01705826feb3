// The fields of a sample, each in one row: what the experience log, the policy's fetch, the
// comparison of a replayed log and the check of a delivery do with it. They all go through
// `each_sample_field`. Pure.
#pragma once

#include "runtime/experience/group.hpp"

#include <string_view>
#include <tuple>
#include <type_traits>

namespace troupe::experience {

enum SampleUse : unsigned {
  kAlwaysLogged = 1,  // each delivery in the experience log has it
  kSomeLogged = 2,    // a delivery has it if one of its samples does
  kAddedLater = 4,    // other roles fill it; empty when the sample is delivered
  kLearnedFrom = 8,   // the policy gets it, and the ranks compare it
  kCompared = 16,     // a replayed log must have the same
};

template <class Member_, unsigned uses>
struct SampleField {
  using Member = Member_;
  static constexpr unsigned kUses = uses;
  Member Trajectory::*member;
  std::string_view log_name;  // in the log of a delivery
};

template <unsigned uses, class Member>
constexpr SampleField<Member, uses> sample_field(Member Trajectory::*member,
                                                 std::string_view log_name = {}) {
  return {member, log_name};
}

// In the order of a delivery in the log.
inline constexpr std::tuple kSampleFields = {
    sample_field<kAlwaysLogged | kLearnedFrom | kCompared>(&Trajectory::versions, "versions"),
    sample_field<kAlwaysLogged | kLearnedFrom>(&Trajectory::finish, "finish"),
    sample_field<kAlwaysLogged>(&Trajectory::text, "text"),
    sample_field<kAlwaysLogged | kLearnedFrom | kCompared>(&Trajectory::tokens, "ids"),
    sample_field<kAlwaysLogged | kLearnedFrom | kCompared>(&Trajectory::behaviour, "logprobs"),
    sample_field<kSomeLogged | kLearnedFrom | kCompared>(&Trajectory::turns, "turns"),
    sample_field<kSomeLogged | kLearnedFrom | kCompared>(&Trajectory::episode, "episodes"),
    sample_field<kSomeLogged | kLearnedFrom | kCompared>(&Trajectory::shares, "shares"),
    sample_field<kSomeLogged>(&Trajectory::feedback, "feedback"),
    sample_field<kSomeLogged>(&Trajectory::feedback_steps, "feedback_steps"),
    sample_field<kSomeLogged | kLearnedFrom | kCompared>(&Trajectory::facts),  // by kTokenFacts
    sample_field<kAddedLater | kLearnedFrom | kCompared>(&Trajectory::reference),
    sample_field<kAddedLater | kLearnedFrom | kCompared>(&Trajectory::teacher),
    sample_field<kAddedLater | kLearnedFrom>(&Trajectory::values),
    sample_field<kAddedLater | kLearnedFrom | kCompared>(&Trajectory::score),
    sample_field<kAddedLater | kLearnedFrom | kCompared>(&Trajectory::steps),
};

// Calls `visit` with the row of each field that has the use.
template <SampleUse use, class Visit>
constexpr void each_sample_field(Visit visit) {
  const auto one = [&visit](const auto& field) {
    if constexpr ((std::remove_cvref_t<decltype(field)>::kUses & use) != 0) visit(field);
  };
  std::apply([&one](const auto&... fields) { (one(fields), ...); }, kSampleFields);
}

// What the policy learns from.
Trajectory learned_part(const Trajectory& sample);

// The fields in which a replayed log must have the same are equal.
bool compares_equal(const Trajectory& a, const Trajectory& b);

}  // namespace troupe::experience
