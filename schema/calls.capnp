@0x92b5601a7e3ddaff;
# Messages of episodes: what an environment asks to begin one, and the calls of a model made in it.
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");
using Common = import "/schema/common.capnp";

# To data: what an environment needs to begin the episodes of a group.
struct FetchEpisodes {
  tickets @0 :List(Common.Ticket);
}

struct EpisodeTask {
  ticket @0 :Common.Ticket;
  row @1 :UInt64;    # index of the row in its dataset
  samples @2 :Int32; # episodes
  seed @3 :UInt64;
  tokens @4 :Data;   # int32, the row's prompt
  text @5 :Text;     # the same as text
  messages @6 :Text; # JSON list of chat messages; empty: the row has none
  label @7 :Text;
  columns @8 :Text;  # the row as JSON
}

struct EpisodeTasks {
  tasks @0 :List(EpisodeTask);
}

struct LogitBias {
  token @0 :Int32;
  bias @1 :Float32;
}

struct CallSampling {
  temperature @0 :Float32;
  topP @1 :Float32;
  minP @2 :Float32;
  topK @3 :Int32;
  maxNewTokens @4 :Int32;
  minNewTokens @5 :Int32;
  ignoreEos @6 :Bool;
  stopTokens @7 :Data;  # int32
  stopStrings @8 :List(Text);
  repetitionPenalty @9 :Float32;
  presencePenalty @10 :Float32;
  frequencyPenalty @11 :Float32;
  logitBias @12 :List(LogitBias);
  rawLogprobs @13 :Bool;
  topLogprobs @14 :Int32;
  keptMass @15 :Bool;
}

# One call of the model, for one sample. An environment asks the controller, which asks a generator;
# when that is lost, another, with the same seed.
struct Complete {
  ticket @0 :Common.Ticket;  # the group that the call is for
  session @1 :UInt64;  # calls of one session go to one generator, as long as it has room
  number @2 :UInt64;   # of the call in its session, from 0
  prompt @3 :Data;     # int32
  sampling @4 :CallSampling;
  seed @5 :UInt64;
  versionMin @6 :UInt64;  # no token may come from older weights
  grammar @7 :Text;  # that the answer must match, as guide::text_of writes it; empty: any text
}

struct Completed {
  tokens @0 :Data;     # int32
  behaviour @1 :Data;  # float32, log-probs when sampled
  versions @2 :Data;   # pairs of uint64, as of a trajectory
  finish @3 :Common.FinishReason;
  rawLogprobs @4 :Data;  # float32, at temperature 1; empty when not asked for
  topTokens @5 :Data;    # int32, [tokens][topLogprobs]
  topLogprobs @6 :Data;  # float32, the same shape
  facts @7 :Common.TokenFacts;  # absent: none was asked for
  guideError @8 :Text;   # why the grammar ended the answer; empty: it did not
}
