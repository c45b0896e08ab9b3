// Folders of images as samples: PNG, JPEG and BMP files (read with stb_image), resized with a
// triangle filter that is widened if the image shrinks, then normalised. An image is stretched to
// the target size, never cropped. Internal to data/.
//
//     struct msc_image_list list = {0};
//     MSC_TRY_OUT(msc_image__list(&list, "photos"));
//     MSC_TRY_OUT(msc_image__check(&options, &spec, "photos"));
//     MSC_TRY_OUT(msc_image__load(&array, list.paths[0], &options, &spec));   // [1, 3, 224, 224]
#ifndef MSC_DATA_IMAGE_H
#define MSC_DATA_IMAGE_H

#include "data/dataset.h"

// Zero-initialise.
struct msc_image_list {
    char **paths; // sorted by name, byte by byte
    size_t n, capacity;
};

// Lists the images directly in `folder`. Hidden files, subfolders and files that are not images are
// skipped. It is an error if an image has an unsupported format, or if there is no image.
enum msc_status msc_image__list(struct msc_image_list *out, const char *folder);
void msc_image__list_finish(struct msc_image_list *list);

// Checks that the options and the spec agree on images; call once before loading.
enum msc_status msc_image__check(const struct msc_image_options *options,
                                 const struct msc_input_spec *spec, const char *folder);
// Loads one sample [1, c, h, w] or [1, h, w, c]: (pixel * scale - mean) / std for a float input,
// raw pixels for a uint8 input.
enum msc_status msc_image__load(struct msc_array **out, const char *path,
                                const struct msc_image_options *options,
                                const struct msc_input_spec *spec);

// Decodes an image to uint8 pixels [h, w, channels]; `channels` is 1, 3 or 4.
enum msc_status msc_image__decode(struct msc_array **out, const char *path, int channels);
// Rejects files that are not PNG, JPEG or BMP, have too many pixels, or have too few bytes for
// their pixels.
enum msc_status msc_image__check_header(const void *bytes, size_t n_bytes, const char *path);
// Reads the segments of a JPEG from the start to the end marker. Damage is reported with its
// position, and no Huffman table may be larger than the decoder's table. Returns the size of the
// frame.
enum msc_status msc_image__check_jpeg(int64_t *width, int64_t *height, const void *bytes,
                                      size_t n_bytes, const char *path);
// Resizes to [height, width, channels]. Rounds to uint8 after each axis, as PIL's BILINEAR does.
enum msc_status msc_image__resize(struct msc_array **out, const struct msc_array *pixels,
                                  int64_t height, int64_t width);

#endif
