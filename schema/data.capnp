@0x95e2c0c2a28d6069;
# To the data role: tickets, prompts, trajectories, experience.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";

struct IssueTickets {
  update @0 :UInt64;
  groups @1 :UInt32;
  samples @2 :Int32;
  evaluation @3 :Bool;
  versionMin @4 :UInt64;  # a delivered token from older weights is an error
}

struct PromptTask {
  ticket @0 :Common.Ticket;
  prompt @1 :UInt64;
  tokens @2 :Data;  # int32
  samples @3 :Int32;
  seed @4 :UInt64;
}

struct PromptTasks {
  tasks @0 :List(PromptTask);
}

struct DeliveredSample {
  record @0 :Common.TokenRecord;
  text @1 :Text;
}

struct PutGroup {
  ticket @0 :Common.Ticket;
  samples @1 :List(DeliveredSample);
  cut @2 :Bool;  # a straggler: fewer samples than asked for
  dropped @3 :UInt32;  # samples that were left out because the group was too long for a frame
}

# Answered when all groups of the update are ready, or as soon as one has failed.
struct AwaitGroups {
  update @0 :UInt64;
  starts @1 :List(UInt64);  # version at the start of each update so far, the newest last
}

struct GroupStatus {
  ticket @0 :Common.Ticket;
  ready @1 :Bool;
  cause @2 :Text;
  samples @3 :UInt32;
  tokens @4 :UInt64;
  meanScore @5 :Float64;
  state @6 :Text;  # "issued", "generated", "ready", "failed"
  filtered @7 :Bool;  # failed because its mean score is outside the range that is kept
  missing @8 :UInt32;  # samples of the slot without a score, those of replaced groups too
}

struct GroupStatuses {
  groups @0 :List(GroupStatus);
  staleness @1 :List(UInt64);  # tokens of the ready groups by age in updates
  crossed @2 :UInt64;          # samples whose tokens come from more than one version
  rewards @3 :List(RewardMean);
  extras @4 :List(RewardMean);  # of the numbers that rewards report beside their scores
}

# Mean of one reward of the set, or of a number that it reports, over the update's samples.
struct RewardMean {
  name @0 :Text;
  value @1 :Float64;
}

struct FetchExperience {
  update @0 :UInt64;
  cursor @1 :UInt32;
}

struct ExperienceSample {
  record @0 :Common.TokenRecord;
  score @1 :Float64;
}

struct ExperienceGroup {
  ticket @0 :Common.Ticket;
  prompt @1 :Data;  # int32
  samples @2 :List(ExperienceSample);
}

struct ExperiencePage {
  groups @0 :List(ExperienceGroup);
  next @1 :UInt32;
}

struct CommitUpdate {
  update @0 :UInt64;
  afterStep @1 :UInt64;
}
