
By0JÐÄ*LÐPKNóPÿPjQPFMÐDÔMQ