// Included by ProcessGroupGloo.hpp, which uses none of its names.
#pragma once
