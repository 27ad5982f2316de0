#include "cost_models/offload.h"

#include <algorithm>

namespace cost_models {

double host_update_seconds(double node_parameters, double parameters_per_second) {
  return parameters_per_second > 0 ? node_parameters / parameters_per_second : 0;
}

double host_link_seconds(double parameters, double bytes_each_way, double bytes_per_second) {
  return bytes_per_second > 0 ? 2 * parameters * bytes_each_way / bytes_per_second : 0;
}

double nvme_swap_seconds(double node_bytes, double read_bytes_per_second, double write_bytes_per_second) {
  if (read_bytes_per_second <= 0 || write_bytes_per_second <= 0) return 0;
  return node_bytes / read_bytes_per_second + node_bytes / write_bytes_per_second;
}

double parameter_fetch_seconds(double bytes, double link_bytes_per_second, double drive_bytes_per_second) {
  const double link = link_bytes_per_second > 0 ? bytes / link_bytes_per_second : 0;
  const double drive = drive_bytes_per_second > 0 ? bytes / drive_bytes_per_second : 0;
  return std::max(link, drive);
}

double swap_buffer_bytes(double buffers, double buffer_elements, double bytes_per_element) {
  return buffers * buffer_elements * bytes_per_element;
}

}  // namespace cost_models
