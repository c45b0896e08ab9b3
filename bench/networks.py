"""Networks made for measurements: their work can be counted, or their sums are all integers."""
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, shape, seed=0):
        self.random = numpy.random.RandomState(seed)
        self.nodes, self.initialisers, self.count = [], [], 0
        self.shape = ["N"] + list(shape)
        self.value = "x"

    def name(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def weight(self, name, array):
        self.initialisers.append(numpy_helper.from_array(array.astype(numpy.float32), name))
        return name

    def add(self, op, inputs, **attributes):
        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        self.value = name + "_out"
        return self.value

    def conv(self, x, channels, out, kernel=3, stride=1, groups=1):
        """A convolution with weights that keep the range of values from joint to joint, if a relu follows."""
        fan = channels // groups * kernel * kernel
        scale = numpy.sqrt(2.0 / fan)
        w = self.random.standard_normal((out, channels // groups, kernel, kernel)) * scale
        name = self.name("weight")
        return self.add("Conv", [x, self.weight(name, w),
                                 self.weight(name + "_bias", self.random.uniform(-.1, .1, out))],
                        kernel_shape=[kernel, kernel], strides=[stride, stride], group=groups,
                        pads=[kernel // 2] * 4)

    def relu(self, x):
        return self.add("Relu", [x])

    def save(self, path):
        feed = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        # onnx's shape inference fills in the shape
        output = helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "bench", [feed], [output], self.initialisers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.save(model, path)


def chain(path, length, channels, size):
    """`length` equal convolutions, each followed by a relu. Returns the input's shape."""
    net = Builder((channels, size, size))
    for _ in range(length):
        net.relu(net.conv(net.value, channels, channels))
    net.save(path)
    return (channels, size, size)


def integers(path):
    """Convolutions of every kind, relu, max pooling, residual adds, reshape and linear layers."""
    net = Builder((3, 24, 24), seed=1)
    x = net.relu(net.conv("x", 3, 16))
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    for stride, width in ((1, 16), (2, 32), (1, 32)):
        channels = 16 if width == 16 or stride == 2 else 32
        y = net.relu(net.conv(x, channels, 2 * channels, kernel=1))
        y = net.relu(net.conv(y, 2 * channels, 2 * channels, stride=stride, groups=2 * channels))
        y = net.conv(y, 2 * channels, width, kernel=1)
        if stride == 1:
            y = net.add("Add", [x, y])
        x = net.relu(y)
    x = net.relu(net.conv(x, 32, 32))
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    shape = numpy_helper.from_array(numpy.array([0, 32 * 9]), "flat")
    net.initialisers.append(shape)
    x = net.add("Reshape", [x, "flat"])
    w = net.random.standard_normal((288, 64)) * numpy.sqrt(2 / 288)
    x = net.relu(net.add("MatMul", [x, net.weight("linear", w)]))
    net.add("Gemm", [x, net.weight("head", net.random.standard_normal((10, 64)) / 8),
                     net.weight("head_bias", net.random.uniform(-.1, .1, 10))], transB=1)
    net.save(path)
    return (3, 24, 24)
