// Every bound of the runtime that is not a user's choice, by name. `troupe doctor` prints the table.
// Constants only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace troupe::core::limits {

inline constexpr std::uint64_t kFrame_bytes_max = 1u << 20;          // one control message
inline constexpr std::uint64_t kFrameSegments_max = 64;              // Cap'n Proto segments
inline constexpr std::uint64_t kFrameNesting_max = 32;               // Cap'n Proto pointer depth
inline constexpr std::uint64_t kRoleInbox_frames_max = 256;          // requests waiting at a role
inline constexpr std::uint64_t kPendingCalls_max = 4096;             // calls in flight of one role
inline constexpr std::chrono::milliseconds kCallDeadline{120'000};   // a call without its own
inline constexpr std::chrono::milliseconds kRoundDeadline{6 * 3600'000};  // one update's rollout or training
inline constexpr std::chrono::milliseconds kShutdownDeadline{10'000};
inline constexpr std::uint64_t kPeerNames_max = 4096;                // roles that a process knows
inline constexpr std::uint64_t kPeerName_bytes_max = 256;
inline constexpr std::chrono::milliseconds kLinkBeatEvery{1'000};    // CAF's own, a backstop
inline constexpr std::chrono::milliseconds kLinkSilence_max{10'000};
inline constexpr std::uint64_t kActivitySpans_max = 4096;            // kept of one role
inline constexpr std::uint64_t kActivityCauses_max = 64;             // why a role was idle
inline constexpr std::chrono::microseconds kActivitySpan_min{100};   // shorter ones join a neighbour
inline constexpr std::uint64_t kSafetensorsHeader_bytes_max = 16u << 20;
inline constexpr std::uint64_t kSafetensorsTensors_max = 50'000;
inline constexpr std::uint64_t kSafetensorsRank_max = 8;
inline constexpr std::uint64_t kJsonLine_bytes_max = 16u << 20;      // one line of a dataset
inline constexpr std::uint64_t kConfigFile_bytes_max = 4u << 20;
inline constexpr std::uint64_t kTemplateFuel_max = 2'000'000;        // chat template instructions
inline constexpr std::uint64_t kTemplateDepth_max = 64;
inline constexpr std::uint64_t kTemplateOutput_bytes_max = 4u << 20;
inline constexpr std::uint64_t kEngineQueue_groups_max = 4096;       // groups waiting in an engine
inline constexpr std::uint64_t kRewardWorkerCalls_max = 1000;        // then the worker is recycled
inline constexpr std::chrono::milliseconds kRewardDeadline{30'000};  // one batch of one reward
inline constexpr std::uint64_t kRewardRetries_max = 2;
inline constexpr std::uint64_t kRewardExtras_max = 32;               // values of a sample beside its score
inline constexpr std::uint64_t kRewardExtra_bytes_max = 4096;        // of these, as JSON
inline constexpr std::uint64_t kRewardMembers_max = 64;              // rewards of one set
inline constexpr std::uint64_t kScorerCalls_max = 32;                // the data role's, to one scorer at a time
inline constexpr std::chrono::milliseconds kScorerPause_min{100};    // before a scorer that is away is called again
inline constexpr std::chrono::milliseconds kScorerPause_max{10'000};  // the pause doubles up to this
inline constexpr std::chrono::milliseconds kNotesEvery{60'000};       // lines about one trouble, at most
inline constexpr std::chrono::milliseconds kWeightSlice{2};          // packing between two engine steps
inline constexpr std::uint64_t kFetchTries_max = 3;                  // of one version of the weights
inline constexpr std::uint64_t kFetchTickets_max = 64;               // prompts asked for in one message
inline constexpr std::uint64_t kGeneratorGroups_max = 128;           // groups sent to one generator at a time
inline constexpr std::chrono::milliseconds kOverloadBackoff{50};     // before a refused call is made again
inline constexpr std::chrono::milliseconds kSettlePoll{20};          // between looks at groups still scored
inline constexpr std::chrono::milliseconds kGeneratorWait{300'000};  // without a generator, then a run ends
inline constexpr std::uint64_t kTicketFailures_max = 3;              // of one ticket, each at another generator or life
inline constexpr std::uint64_t kGeneratorFailures_max = 3;           // in a row, then it is started again
inline constexpr std::chrono::milliseconds kWeightsAgain_min{250};   // before weights that failed are sent again; doubles
inline constexpr std::chrono::milliseconds kWeightsAgain_max{8'000};
inline constexpr std::chrono::milliseconds kRewardWait{300'000};     // without a reward, then a run ends
inline constexpr std::chrono::milliseconds kLastSave{600'000};       // of a run that ends for an error
inline constexpr std::uint64_t kDeviceJobs_max = 64;                 // jobs waiting at a DeviceThread
inline constexpr std::chrono::milliseconds kDoorAuthentication{1'000};  // to prove oneself at a door
inline constexpr std::uint64_t kDoorFailures_max = 5;                // wrong proofs of an unknown address a minute
inline constexpr std::chrono::hours kDoorProof_kept{1};              // an address that proved itself is let in
inline constexpr std::uint64_t kDoorLines_max = 60;                  // log lines of a door a minute
inline constexpr std::uint64_t kDoorAddresses_max = 1024;            // remembered by a door, of each kind
inline constexpr std::uint64_t kDoorPending_max = 64;                // connections that have not proved themselves
inline constexpr std::uint64_t kDoorConnections_max = 256;           // connections carried at once
inline constexpr std::uint64_t kSpliceBuffer_bytes = 64u << 10;      // one way of one connection
inline constexpr std::chrono::milliseconds kSpliceConnect{5'000};    // to reach a door and be let in
inline constexpr std::uint64_t kHttpHeader_bytes_max = 16u << 10;
inline constexpr std::uint64_t kHttpBody_bytes_max = 16u << 20;      // of a request or a reply
inline constexpr std::uint64_t kHttpConnections_max = 256;
inline constexpr std::chrono::milliseconds kHttpHeader{10'000};      // to send a request's header
inline constexpr std::chrono::milliseconds kHttpBody{60'000};        // to send a body or take a reply
inline constexpr std::chrono::milliseconds kHttpIdle{60'000};        // between two requests of a connection
inline constexpr std::chrono::milliseconds kHttpRefusal{1'000};  // to take a refusal before the end
inline constexpr std::uint64_t kHttpRefusals_max = 256;  // connections being told "too many"
inline constexpr std::chrono::milliseconds kHttpRefusalPause{
    5};  // before a look for a place among those
inline constexpr std::uint64_t kHttpLinger_bytes_max = 1u
                                                       << 20;  // of a refused request, thrown away
inline constexpr std::uint64_t kHttpReadAhead_bytes_max =
    64u << 10;  // of a connection, beside its header
inline constexpr std::chrono::milliseconds kAcceptPause{
    100};                                                 // after an error such as too many files
inline constexpr std::uint64_t kServeConnections = 1024;  // --max-connections of `troupe serve`
inline constexpr std::uint64_t kServePrompts_max = 1024;  // of one request
inline constexpr std::uint64_t kServeLogprobs = 20;       // --max-logprobs of `troupe serve`
inline constexpr std::chrono::milliseconds kNewsWait{
    10'000};  // for a newer version, then asked again
inline constexpr std::uint64_t kJsonDepth_max = 64;                  // of JSON from the network
inline constexpr std::uint64_t kPasses_max = 64;                     // given out and not used yet
inline constexpr std::uint64_t kNodes_max = 256;                     // of a company
inline constexpr std::chrono::milliseconds kBeatEvery{250};          // sign of life of a node
inline constexpr std::chrono::milliseconds kLookEvery{100};          // at the signs of life
inline constexpr std::chrono::milliseconds kSuspectAfter{1'000};     // of silence
inline constexpr std::chrono::milliseconds kFrozenAfter{2'000};      // of silence: given up
inline constexpr std::chrono::milliseconds kRestartAfter{100};       // of a lost role; doubles
inline constexpr std::chrono::milliseconds kRestartAfter_max{5'000};
inline constexpr std::chrono::milliseconds kRestartWindow{60'000};
inline constexpr std::uint64_t kRestarts_max = 8;                    // of one role in that window
inline constexpr std::chrono::milliseconds kRestartRest{60'000};     // of a role that others stand in for, after these
inline constexpr std::chrono::milliseconds kSpawnDeadline{600'000};  // to load and start a role
inline constexpr std::chrono::milliseconds kNodeStart{20'000};       // of a local process until it joins
inline constexpr std::chrono::milliseconds kStatusEvery{500};        // roles are asked for their accounts
inline constexpr std::chrono::milliseconds kNoProgress{60'000};      // then it is said who waits for whom
inline constexpr std::chrono::milliseconds kEngineTurn{2};           // of short steps, before news is heard
inline constexpr std::uint64_t kWeightReaders_max = 64;              // snapshots lent by one publisher
inline constexpr std::uint64_t kWeightStrangers_max = 16;            // connections that have not asked yet
inline constexpr std::uint64_t kWeightQueue_max = 1024;              // receivers that wait for one of those
inline constexpr std::chrono::milliseconds kWeightQueueSign{2'000};  // so often they are told that they wait
inline constexpr std::uint64_t kWeightMappings_max = 3;              // that a receiver keeps between versions
inline constexpr std::chrono::milliseconds kWeightHello{5'000};      // then a silent receiver is cut
inline constexpr std::chrono::milliseconds kWeightStall{10'000};     // without a byte taken: the same
inline constexpr std::chrono::milliseconds kWeightReuse{20};         // for a leased buffer, then a fresh one

struct Row {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit;
};

// The table above as rows, for `doctor` and the docs; ends with a row of empty name.
const Row* table() noexcept;

}  // namespace troupe::core::limits
