// The engine's side of the weight channel between processes. `fetch` asks the publisher that a
// location names. On the same host it uses the publisher's Unix socket, if that answers, and reads
// the weights in place (on the GPU when both use the same one, else in shared memory); otherwise it
// receives them by TCP, from the publisher or from relays (stream_fetch.hpp), and keeps the
// connection for the next version; if that has ended meanwhile, it connects anew. What comes by TCP
// it passes on as a relay. `fetch` blocks, so it needs its own thread; the intakes that it returns
// are used on the engine's thread, one at a time. Memory: two sets of panels; with TCP two images,
// a third while other receivers or an older intake still use one.
#pragma once

#include "runtime/weights/image_intake.hpp"
#include "runtime/weights/opened_snapshots.hpp"
#include "runtime/weights/relay.hpp"
#include "runtime/weights/shadow_pool.hpp"
#include "runtime/weights/source_streams.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::weights {

class RemoteWeightSubscriber final : public WeightSubscriber {
 public:
  // `dtype`: of the panels, and so of the image that it asks for. `host_id`: own_host_id() of this
  // process, compared with WeightLocation::host_id. `memory`: that of the engine's team, for the
  // panels.
  explicit RemoteWeightSubscriber(const model::ModelSpec& spec,
                                  kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                                  std::string host_id = own_host_id(),
                                  core::Memory& memory = core::host_memory(),
                                  RelayOptions relays = {});

  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;
  void close() override { closed_ = true; }

  // Counters of the relay that this receiver is for others; zeros before the first stream.
  ServerCounters relay_counters() const;

 private:
  // Empty when the weights cannot be read in this device's memory.
  core::Result<std::optional<ArrivedImage>> from_device(core::Version at_least,
                                                        const WeightLocation& location,
                                                        net::Patience patience);
  core::Result<ArrivedImage> open_device(const Answer& answer,
                                         DevicePlace place,
                                         const std::string& source,
                                         net::OwnedFd& lease);
  core::Result<ArrivedImage> from_memory(net::OwnedFd socket,
                                         core::Version at_least,
                                         const WeightLocation& location,
                                         net::Patience patience);
  core::Result<ArrivedImage> from_stream(core::Version at_least,
                                         const WeightLocation& location,
                                         net::Patience patience);
  core::Result<ArrivedImage> from_source(const std::string& name,
                                         const Hello& hello,
                                         Share share,
                                         const std::string& public_key,
                                         net::Patience patience);
  // Connections that delivered a version and stay open for the next, and where they lead.
  struct Kept {
    StreamSockets sockets;
    std::string host, key;
    std::uint32_t port = 0;
  };
  StreamSockets take_kept(const WeightLocation& location);
  core::Result<Hello> hello_to(const WeightLocation& location, core::Version at_least, Wants wants);
  core::Result<void> open_relay(const std::string& key);

  const kernels::PanelDtype image_;
  const SnapshotShape shape_;
  const std::string host_id_;
  const std::uint32_t number_;  // RelayPlace::number
  core::Memory& memory_;
  const RelayOptions relays_;
  const std::shared_ptr<ShadowPool> shadows_;
  OpenedSnapshots opened_;
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;  // of what follows; one fetch at a time uses the relay
  Kept kept_;
  std::unique_ptr<Relay> relay_;
  std::vector<std::uint32_t> set_aside_;  // relays that gave wrong bytes
};

}  // namespace troupe::weights
