// Arrays as text, against values made by hand: RFC 4648's own examples, and numpy.save's bytes.
#include "apps/serving/npy_text.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::app {

TEST(NpyText, Base64OfRfc4648) {
  const std::pair<const char*, const char*> table[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : table)
    EXPECT_EQ(base64(plain), encoded);
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(NpyText, BytesAreThoseOfNumpySave) {
  // np.save of np.array([[[1, 511], [0, 2], [3, 65535]]], dtype=np.int32), whose axes all have
  // other lengths: 118 bytes of header after 10 of magic, version and length.
  const std::vector<std::uint16_t> values = {1, 511, 0, 2, 3, 65535};
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3, 2), }";
  header.resize(117, ' ');
  bytes += header + '\n';
  bytes += std::string("\x01\x00\x00\x00\xff\x01\x00\x00\x00\x00\x00\x00", 12);
  bytes += std::string("\x02\x00\x00\x00\x03\x00\x00\x00\xff\xff\x00\x00", 12);
  EXPECT_EQ(npy_text(values, {1, 3, 2}), base64(bytes));
  EXPECT_EQ(npy_text({}, {0, 1, 2}).size(), base64(std::string(128, ' ')).size());
}

}  // namespace troupe::app
