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
inline constexpr std::uint64_t kDeviceJobs_max = 64;                 // jobs waiting at a DeviceThread

struct Row {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit;
};

// The table above as rows, for `doctor` and the docs; ends with a row of empty name.
const Row* table() noexcept;

}  // namespace troupe::core::limits
