// Tiles of matrix products: the list of tiles, and the choice of a tile for a shape. The choice
// does not change a bit of any result.
#include "kernels/vulkan/vk.h"

#include <string.h>

// `speed` is for products of floats, speed_integer for products of bytes. Both are relative to the
// fastest tile without matrix units, on a fully occupied device. The numbers of family G were
// measured on an NVIDIA H200, where products of bytes leave fewer registers for large tiles. Those
// for matrix units are estimates: published rates of matrices are ten times those of dot products.
static const struct row {
    struct msc_vk_tile tile;
    float speed, speed_integer;
} tiles_g[] = {
    {{128, 128, 16, 8, 8, false}, 0.94f, 0.66f}, {{128, 64, 16, 8, 8, false}, 0.83f, 0.65f},
    {{64, 128, 16, 8, 8, false}, 0.81f, 0.69f},  {{64, 64, 16, 8, 4, false}, 1.0f, 0.68f},
    {{128, 32, 16, 8, 4, false}, 0.9f, 0.61f},   {{64, 32, 16, 4, 4, false}, 0.73f, 0.92f},
    {{32, 64, 16, 4, 4, false}, 0.77f, 1.0f},    {{32, 32, 8, 4, 4, false}, 0.64f, 0.86f},
    {{128, 128, 16, 32, 64, true}, 0.0f, 10.0f}, {{128, 64, 16, 32, 32, true}, 0.0f, 8.0f},
    {{64, 64, 16, 32, 32, true}, 0.0f, 6.0f},    {{32, 32, 16, 16, 16, true}, 0.0f, 3.0f},
};
#define N_TILES_G ((int)(sizeof(tiles_g) / sizeof(tiles_g[0])))
#define SMALLEST_G 7 // of the tiles without matrix units

// Each tile has 32 invocations; the shape of the product determines how they are divided into rows
// and columns.
static const struct row tiles_u[] = {
    {{32, 32, 1, 4, 8, false}, 1.0f, 1.0f},
    {{16, 32, 1, 4, 4, false}, 0.9f, 0.9f},
    {{32, 64, 1, 8, 8, false}, 0.8f, 0.8f},
    {{32, 32, 1, 8, 4, false}, 0.8f, 0.8f},
};
#define N_TILES_U ((int)(sizeof(tiles_u) / sizeof(tiles_u[0])))

_Static_assert(N_TILES_G <= MSC_VK_MAX_TILES && N_TILES_U <= MSC_VK_MAX_TILES, "too many tiles");

int msc_vk_n_tiles(const struct msc_vk *vk) {
    return vk->tuning.is_family_u ? N_TILES_U : N_TILES_G;
}

const struct msc_vk_tile *msc_vk_tile(const struct msc_vk *vk, int index) {
    return vk->tuning.is_family_u ? &tiles_u[index].tile : &tiles_g[index].tile;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

bool msc_vk_matrix_fits_tiles(const struct msc_vk_matrix *size) {
    for (int i = 0; i < N_TILES_G; i++) {
        const struct msc_vk_tile *t = &tiles_g[i].tile;
        if (t->is_matrix &&
            (size->rows == 0 || size->cols == 0 || size->depth == 0 || t->row % size->rows != 0 ||
             t->col % size->cols != 0 || 4 * t->depth % size->depth != 0 || size->depth % 4 != 0)) {
            return false;
        }
    }
    return true;
}

uint32_t msc_vk_tile_lanes(const struct msc_vk *vk, const struct msc_vk_tile *t) {
    return t->rows / t->row * (t->cols / t->col) * (t->is_matrix ? vk->matrix.subgroup : 1);
}

// The bytes of shared memory, as the shaders declare it.
static uint32_t shared_bytes(const struct msc_vk *vk, const struct msc_vk_tile *t) {
    if (t->is_matrix) {
        uint32_t n_subgroups = t->rows / t->row * (t->cols / t->col);
        return 4 * ((t->rows + t->cols) * (t->depth + 4) +
                    n_subgroups * vk->matrix.rows * vk->matrix.cols);
    }
    return vk->tuning.is_family_u ? 0 : 4 * t->depth * (t->rows + 4 + t->cols);
}

bool msc_vk_tile_is_possible(const struct msc_vk *vk, int index, bool is_integer) {
    const VkPhysicalDeviceLimits *l = &vk->properties.limits;
    const struct msc_vk_tile *t = msc_vk_tile(vk, index);
    uint32_t lanes = msc_vk_tile_lanes(vk, t);
    return (!t->is_matrix || (vk->has_matrix && is_integer)) &&
           lanes <= l->maxComputeWorkGroupInvocations && lanes <= l->maxComputeWorkGroupSize[0] &&
           shared_bytes(vk, t) <= l->maxComputeSharedMemorySize;
}

// ---- By rule ----------------------------------------------------------------------------------

// Estimates the time of a shape with a tile. The unit is the time of one output element with the
// fastest tile. Workgroups run in waves.
static double vk_tiles_cost(const struct msc_vk *vk, const struct row *row,
                            const struct msc_vk_shape *s) {
    const struct msc_vk_tile *t = &row->tile;
    uint64_t groups = ceil_div(s->rows, t->rows) * ceil_div(s->cols, t->cols);
    float speed = s->is_integer ? row->speed_integer : row->speed;
    return (double)ceil_div(groups, vk->tuning.slots) * t->rows * t->cols / (double)speed;
}

int msc_vk_choose_by_rule(const struct msc_vk *vk, const struct msc_vk_shape *shape) {
    int best = -1;
    double least = 0.0;
    if (vk->tuning.is_family_u) {
        return 0;
    }
    for (int i = 0; i < N_TILES_G; i++) {
        double c = vk_tiles_cost(vk, &tiles_g[i], shape);
        bool is_allowed = tiles_g[i].tile.is_matrix || (vk->tuning.tiles >> i & 1u) != 0;
        if (is_allowed && msc_vk_tile_is_possible(vk, i, shape->is_integer) &&
            (best < 0 || c < least)) {
            best = i;
            least = c;
        }
    }
    return best < 0 ? SMALLEST_G : best; // every device can run the smallest tile
}

// ---- As tuned ---------------------------------------------------------------------------------

struct msc_work msc_vk_work_of(const struct msc_vk_shape *s) {
    struct msc_work work = {.rows = s->rows, .cols = s->cols, .depth = s->depth};
    strcpy(work.kind, s->is_integer ? "int8" : "float32");
    return work;
}

int msc_vk_kept_tile(const struct msc_vk *vk, const struct msc_vk_shape *shape) {
    const struct msc_work work = msc_vk_work_of(shape);
    double least = 6.0; // beyond this distance, no kept shape is similar enough
    int best = -1;
    for (int i = 0; i < vk->n_tuned; i++) {
        const struct msc_work of = msc_vk_work_of(&vk->tuned[i].shape);
        double distance = msc_work_distance(&of, &work);
        if (vk->tuned[i].shape.is_integer == shape->is_integer && distance < least) {
            least = distance;
            best = vk->tuned[i].tile;
        }
    }
    return best;
}

int msc_vk_choose_tile(const struct msc_vk *vk, const struct msc_vk_shape *shape) {
    int kept = msc_vk_kept_tile(vk, shape);
    if (vk->forced_tile >= 0) {
        return vk->forced_tile;
    }
    return kept >= 0 ? kept : msc_vk_choose_by_rule(vk, shape);
}

// A software driver takes a second to compile a large tile of family G, so on such a driver only
// the tiles of family G in tuning.tiles are measured.
bool msc_vk_tile_is_tried(const struct msc_vk *vk, int tile) {
    bool is_software = vk->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    return vk->tuning.is_family_u || !is_software || (vk->tuning.tiles >> tile & 1u) != 0;
}
