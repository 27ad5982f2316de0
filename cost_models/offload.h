// What an optimizer away from its device costs a step: the update on the host's processors, the host link,
// the NVMe drive, and the pinned buffers in between.
#pragma once

namespace cost_models {

/// Seconds of Adam on the processors of a node: n / rate, with n the parameters that the node's ranks own
/// together and rate what its processors update each second (DeepSpeed's CPU Adam: some 10⁹ a socket).
double host_update_seconds(double node_parameters, double parameters_per_second);

/// Seconds on a device's host link: gradients go down and weights come back, `bytes_each_way` for each
/// parameter.
double host_link_seconds(double parameters, double bytes_each_way, double bytes_per_second);

/// Seconds in which a node's drives read all swapped state and write it back: b / read + b / write.
/// ZeRO-Infinity streams the state through once a step; 0 where a rate is not known.
double nvme_swap_seconds(double node_bytes, double read_bytes_per_second, double write_bytes_per_second);

/// Seconds in which a device fetches offloaded parameters for one pass: over its host link, and from a drive
/// at its share of the node's rate. The slower counts; 0 where a rate is not known.
double parameter_fetch_seconds(double bytes, double link_bytes_per_second, double drive_bytes_per_second);

/// Pinned host memory of a swapper: `buffers` of `buffer_elements` each. DeepSpeed's defaults: 5 buffers of
/// 10⁸ 16-bit parameters, 4 of optimizer state in fp32.
double swap_buffer_bytes(double buffers, double buffer_elements, double bytes_per_element);

}  // namespace cost_models
